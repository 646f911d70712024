import { describe, expect, it } from 'vitest';
import { loadStackFile } from '../../../shape/configuration.ts';
import { planRelease } from '../../../shape/plan.ts';
import { readTemplates } from '../../../templates/templates.ts';
import { completedFile, suppliedHost } from '../../fixtures/operator-files.ts';

/** Names that every object of JavaScript has without having been given them. */
const inherited = ['constructor', 'toString', 'valueOf', 'hasOwnProperty', '__defineGetter__'];

function release(lines: string, stack = 'glm-w4a16') {
  const file = loadStackFile(`Pulumi.${stack}.yaml`, `${completedFile(stack)}${lines}`);
  if (file.kind !== 'shape') throw new Error('no shape');
  const host = suppliedHost();
  return planRelease({ host, shape: file.shape, stack, templates: readTemplates(), patches: new Map() });
}

describe('a name that every object has', () => {
  it.each(inherited)('%s is a variable like every other', (name) => {
    const planned = release(`    secrets: {${name}: {version: '1'}}\n`);
    expect(planned.secrets).toEqual([{ variable: name, name: `frank-archon-${name}-1` }]);
    expect(Object.keys(planned.environment)).not.toContain(name);
  });

  it.each(['constructor', 'tostring'])('{state:%s} is no state folder where none has this name', (name) => {
    const file = completedFile('r9v-q8_0').replaceAll('{state:q8xl}', `{state:${name}}`);
    const read = loadStackFile('Pulumi.r9v-q8_0.yaml', file);
    if (read.kind !== 'shape') throw new Error('no shape');
    const input = { host: suppliedHost(), stack: 'r9v-q8_0', templates: readTemplates(), patches: new Map() };
    expect(() => planRelease({ ...input, shape: read.shape })).toThrow(`{state:${name}}`);
  });

  it.each(inherited)('%s is an unknown key like every other', (name) => {
    for (const lines of [
      `    ${name}: x\n`,
      `    limits: {${name}: x}\n`,
      `    deadlines: {${name}: 1}\n`,
      `  slot:${name}: x\n`,
    ]) {
      const text = completedFile('r9v-q8_0') + lines;
      expect(() => loadStackFile('Pulumi.r9v-q8_0.yaml', text), lines).toThrow('is not a known key');
    }
  });

  it('__proto__ is no key at all, and nothing of it is lost in silence', () => {
    for (const map of ['environment', 'secrets', 'exceptions', 'limits']) {
      const text = `${completedFile('r9v-q8_0')}    ${map}: {__proto__: x}\n`;
      expect(() => loadStackFile('Pulumi.r9v-q8_0.yaml', text), map).toThrow(
        `slot:shape.${map}.__proto__: must not be a key`,
      );
    }
  });
});
