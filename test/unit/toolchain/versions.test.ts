import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { isAtLeast, versions } from '../../../toolchain/versions.ts';

const requiredBy = (module: string) =>
  readFileSync(path.join(import.meta.dirname, '../../../toolchain', module, 'go.mod'), 'utf8');

it('the Go modules build the versions that are named', () => {
  expect(requiredBy('pulumi-engine')).toContain(`github.com/pulumi/pulumi/pkg/v3 v${versions.pulumi} `);
  expect(requiredBy('pulumi-engine')).toContain(`github.com/pulumi/pulumi/sdk/v3 v${versions.pulumi} `);
  expect(requiredBy('language-host')).toContain(`github.com/pulumi/pulumi/sdk/v3 v${versions.languageHost} `);
});

it.each([
  ['3.259.0', '3.259.0', true],
  ['v3.259.1', '3.259.0', true],
  ['4.0.0', '3.259.0', true],
  ['3.260.0-alpha.1', '3.259.0', true],
  ['3.258.9', '3.259.0', false],
  ['2.300.0', '3.259.0', false],
  ['3.99.0', '3.259.0', false],
])('%s is at least %s: %s', (version, minimum, expected) => {
  expect(isAtLeast(version, minimum)).toBe(expected);
});

it('refuses to compare what is not a version', () => {
  expect(() => isAtLeast('latest', '3.259.0')).toThrow('not a version: "latest"');
});
