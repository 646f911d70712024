import { chmodSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { packLayer, readLayer } from '../../lab/engine/layer.ts';
import { temporaryFolder } from './engine.ts';

function tree(): string {
  const root = join(temporaryFolder(), 'tree');
  mkdirSync(join(root, 'usr/bin'), { recursive: true });
  writeFileSync(join(root, 'usr/bin/vllm'), '#!/bin/sh\n');
  chmodSync(join(root, 'usr/bin/vllm'), 0o755);
  symlinkSync('usr/bin', join(root, 'bin'));
  return root;
}

test('a tree packed again later, elsewhere, is the same layer', async () => {
  const [one, other] = [tree(), tree()];
  utimesSync(join(other, 'usr/bin/vllm'), 1_000_000, 1_000_000);
  const first = await packLayer(one, join(one, '../layer'));
  const second = await packLayer(other, join(other, '../layer'));
  expect({ ...second, path: '' }).toEqual({ ...first, path: '' });
  expect(await readLayer(join(one, '../layer'))).toEqual(first);
});

test('a changed byte is another layer', async () => {
  const [one, other] = [tree(), tree()];
  writeFileSync(join(other, 'usr/bin/vllm'), '#!/bin/ls\n');
  const first = await packLayer(one, join(one, '../layer'));
  const second = await packLayer(other, join(other, '../layer'));
  expect(second.digest).not.toBe(first.digest);
  expect(second.diffId).not.toBe(first.diffId);
});

test('a layer keeps modes and links, belongs to root and has no time', async () => {
  const root = tree();
  const { path } = await packLayer(root, join(root, '../layer'));
  const { stdout } = await execa('tar', ['-tvzf', path, '--full-time', '--numeric-owner'], {
    env: { TZ: 'UTC' },
  });
  expect(stdout).toMatch(/^-rwxr-xr-x 0\/0 +10 1970-01-01 00:00:00 usr\/bin\/vllm$/m);
  expect(stdout).toMatch(/^lrwxrwxrwx 0\/0 +0 1970-01-01 00:00:00 bin -> usr\/bin$/m);
});
