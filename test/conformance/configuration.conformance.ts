import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Handed, handedSource } from '../../components/stack-files.ts';
import { ConfigurationError, load, loadStackFile } from '../../shape/configuration.ts';
import { disputeOver } from '../../shape/plain-scalars.ts';
import { readStrictYaml } from '../../shape/strict-yaml.ts';
import { prepareToolchain, type Toolchain } from '../../toolchain/prepare.ts';
import { hostileWords } from '../fixtures/hostile-words.ts';
import { completedFile, operatorFile, shapeStacks } from '../fixtures/operator-files.ts';

/** Characters of which the words are made that YAML readers type differently. */
const wordUnits = '0123456789_.:+-eExobaBfFnNyYtTrusl~=<TZ';

/** Writes down what it is handed, as `components/stack.ts` asks for it. */
const program = `
import { writeFileSync } from 'node:fs';
import * as pulumi from '@pulumi/pulumi';
const secretKeys = JSON.parse(process.env.PULUMI_CONFIG_SECRET_KEYS ?? '[]');
writeFileSync('handed.json', JSON.stringify({ values: pulumi.runtime.allConfig(), secretKeys }));
`;

describe('what Pulumi reads in a stack file', () => {
  let toolchain: Toolchain;
  let folder: string;

  beforeAll(async () => {
    toolchain = await prepareToolchain();
    folder = mkdtempSync(path.join(tmpdir(), 'slot-config-'));
    mkdirSync(path.join(folder, 'state'));
    const runtime = 'runtime:\n  name: nodejs\n  options:\n    typescript: false\n';
    writeFileSync(path.join(folder, 'Pulumi.yaml'), `name: slot\nmain: index.ts\n${runtime}`);
    writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
    writeFileSync(path.join(folder, 'index.ts'), program);
    symlinkSync(
      path.join(import.meta.dirname, '..', '..', 'node_modules'),
      path.join(folder, 'node_modules'),
    );
    await pulumi(['stack', 'init', 'case', '--no-select']);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each(['dankserver', ...shapeStacks])('is what the loader reads in %s', async (stack) => {
    const [key = ''] = Object.keys((parse(operatorFile(stack)) as { config: object }).config);
    const text = completedFile(stack);
    expect(() => loadStackFile(`Pulumi.${stack}.yaml`, text)).not.toThrow();
    expect(await read(text, key)).toEqual((parse(text) as { config: Record<string, unknown> }).config[key]);
  });

  it('is what the loader reads in every word that it does not refuse', async () => {
    const words = fc
      .sample(fc.string({ unit: fc.constantFrom(...wordUnits), minLength: 1, maxLength: 10 }), 5000)
      .filter((word) => !/^[-:?<=~]|[:#]$|^\.\.\./.test(word) && disputeOver(word) === undefined);
    expect(words.length).toBeGreaterThan(500);
    const text = `config:\n  slot:shape:\n${words.map((word) => `    - ${word}\n`).join('')}`;
    expect(await read(text, 'slot:shape')).toEqual(words.map((word) => parse(word) as unknown));
  });

  it('is what the loader reads in hostile text', async () => {
    const text = `config:\n  slot:shape:\n${hostileWords.map((word) => `    - ${escaped(word)}\n`).join('')}`;
    expect(parse(text)).toEqual({ config: { 'slot:shape': hostileWords } });
    expect(await read(text, 'slot:shape')).toEqual(hostileWords);
  });

  it.each([
    ['0600', 384],
    ['1_000', 1000],
    ['0x1F', 31],
    ['12345e6', 12345000000],
    ['1.20e1', 12],
    ['0o17', 15],
    ['0b11', 3],
    ['.5', 0.5],
    ['True', true],
    ['2026-01-01', '2026-01-01 00:00:00 +0000 UTC'],
    ['123456789012345678901234567890', 1.2345678901234568e29],
    ['0.0000001', 1e-7],
  ])('differs from what is written in %s, which the loader refuses', async (word, taken) => {
    expect(await read(`config:\n  slot:shape:\n    word: ${word}\n`, 'slot:shape')).toEqual({ word: taken });
    expect(disputeOver(word)).toBeTypeOf('string');
  });

  it.each([
    ['null', 'a: null', null],
    ['~', 'a: ~', null],
    ['nothing', 'a:', null],
    ['yes', "a: 'yes'", 'yes'],
    ['a number in quotes', "a: '1.20'", '1.20'],
    ['text of two lines', 'a: x\n      y', 'x y'],
    ['folded text', 'a: >-\n      x\n      y', 'x y'],
    ['a tab before it', 'a:\tx', 'x'],
    ['a mark of byte order before the file', 'a: x', 'x', '\ufeff'],
  ])('is what the loader reads with %s', async (_what, line, value, before = '') => {
    const text = `${before}config:\n  slot:shape:\n    ${line}\n`;
    expect(await read(text, 'slot:shape')).toEqual({ a: value });
    expect(readStrictYaml('x', text)).toMatchObject({
      content: { config: { 'slot:shape': { a: value } } },
      faults: [],
    });
  });

  it('is what the loader reads with the line ends of Windows', async () => {
    const text = completedFile('glm-w4a16').replaceAll('\n', '\r\n');
    expect(await read(text, 'slot:shape')).toEqual(
      (parse(text) as { config: object }).config['slot:shape' as never],
    );
    expect(() => loadStackFile('Pulumi.glm-w4a16.yaml', text)).not.toThrow();
  });

  it.each([
    ['a number as key', '1: x', { '1': 'x' }],
    ['a number with a fraction as key', '1.50: x', { '1.5': 'x' }],
    ['a truth as key', 'true: x', { true: 'x' }],
    ['nothing as key', '~: x', { '<nil>': 'x' }],
    ['an alias', 'a: &x 5\n    b: *x', { a: 5, b: 5 }],
    ['a merge', 'a: &x {p: 1}\n    b: {<<: *x, q: 2}', { a: { p: 1 }, b: { p: 1, q: 2 } }],
    ['a tag', 'a: !!str 5\n    b: !!binary aGk=', { a: '5', b: 'hi' }],
    ['a second document', 'a: 1\n---\nb: 2', { a: 1 }],
  ])('is more than the loader takes: %s', async (_what, line, taken) => {
    const text = `config:\n  slot:shape:\n    ${line}\n`;
    expect(await read(text, 'slot:shape')).toEqual(taken);
    expect(refusalOf(text)).toMatch(/must (?:have text as its key|not be an alias|not have a tag|be YAML)/);
  });

  it.each([
    ['a key twice', '    a: 1\n    a: 2\n'],
    ['a key of another package twice', '    a: 1\n  command:x: 1\n  command:x: 1\n'],
    ['a list as key', '    ? [a, b]\n    : c\n'],
    ['a tab as indentation', '\ta: 1\n'],
    ['two colons', '    a: 1\n  a:b:c: 1\n'],
    ['a control character', '    a: x\u0001y\n'],
    ['another control character', '    a: x\u007fy\n'],
    ['a line end of another kind', '    a: x\u0085y\n'],
    ['eleven thousand levels', `    a: ${'['.repeat(11_000)}${']'.repeat(11_000)}\n`],
  ])('is not read at all, and the loader refuses it: %s', async (_what, lines) => {
    const text = `config:\n  slot:shape:\n${lines}`;
    await expect(read(text, 'slot:shape')).rejects.toThrow(/yaml|configuration key/i);
    expect(refusalOf(text)).toMatch(/Pulumi\.case\.yaml/);
  });

  it('is written back without what is refused, and with the line for editors', async () => {
    const line = '# yaml-language-server: $schema=./stack.schema.json\n';
    const file = write(`${line}config:\n  slot:shape:\n    # kept\n    a: 0600\n    b: &x 1.20\n    c: *x\n`);
    await pulumi(['config', 'set', '--path', 'slot:shape.d', 'new', ...of(file)]);
    await pulumi(['config', 'set', '--secret', '--path', 'slot:secrets.TOKEN', 'hush', ...of(file)]);
    const text = readFileSync(file, 'utf8');
    expect(text).toMatch(
      /^# yaml-language-server: \$schema=\.\/stack\.schema\.json\nconfig:\n {2}slot:shape:\n {4}# kept\n {4}a: 384\n/,
    );
    expect(text).toMatch(/\n {4}c: 1\.2\n {4}d: new\n {2}slot:secrets:\n {4}TOKEN:\n {6}secure: v1:/);
    expect(text).not.toContain('hush');
  });

  it.each(['experiments/Pulumi.case.yaml', 'Pulumi.case.yaml', 'Pulumi.other.yaml'])(
    'reaches the program, which finds that it is of %s or of none that it knows',
    async (name) => {
      const key = 'slot:secrets.HF_TOKEN';
      const shape = "  slot:shape:\n    shortName: '1.20'\n    list: [1, {a: true}]\n    nothing:\n";
      mkdirSync(path.join(folder, 'experiments'), { recursive: true });
      const file = path.join(folder, name);
      writeFileSync(file, `config:\n${shape}  slot:hostsFolder: hosts\n  command:count: 0600\n`);
      await pulumi(['config', 'set', '--secret', '--path', key, 'canary', ...of(file)]);
      const handed = await handedFrom(file);
      expect(handed.values).toMatchObject({ 'slot:hostsFolder': 'hosts', 'command:count': '384' });
      expect(handed.secretKeys).toEqual(['slot:secrets']);
      const source = handedSource(folder, 'case', handed);
      const isKnown = name !== 'Pulumi.other.yaml';
      expect(source.sourceAt(['slot:shape', 'shortName'])).toBe(isKnown ? '1.20' : undefined);
      expect(JSON.stringify(source.config).includes('canary')).toBe(!isKnown);
      rmSync(file);
    },
  );

  it('reaches the program with a secret inside decrypted, and marked', async () => {
    const file = write('config:\n  slot:shape:\n    environment: {}\n');
    await pulumi([
      'config',
      'set',
      '--secret',
      '--path',
      'slot:shape.environment.TOKEN',
      'canary',
      ...of(file),
    ]);
    const handed = await handedFrom(file);
    expect(handed).toMatchObject({
      values: { 'slot:shape': '{"environment":{"TOKEN":"canary"}}' },
      secretKeys: ['slot:shape'],
    });
    const refusal = problemOf(() => load(handedSource(folder, 'case', handed)));
    expect(refusal).toContain('slot:shape: must not hold a secret');
    expect(refusal).not.toContain('canary');
  });

  it('keeps a PCI address text where `pulumi config set` writes it', async () => {
    const file = write(operatorFile('dankserver'));
    await pulumi(['config', 'set', '--path', 'slot:host.gpus[0]', '0000:03:00.0', ...of(file)]);
    const values = JSON.parse(await pulumi(['config', '--json', ...of(file)]));
    expect(values['slot:host'].objectValue.gpus).toEqual(['0000:03:00.0']);
    expect(() => loadStackFile('Pulumi.dankserver.yaml', readFileSync(file, 'utf8'))).not.toThrow('gpus');
  });

  function refusalOf(text: string): string {
    return problemOf(() => loadStackFile('Pulumi.case.yaml', text));
  }

  function problemOf(act: () => unknown): string {
    try {
      act();
      return '';
    } catch (error) {
      if (error instanceof ConfigurationError) return error.message;
      throw error;
    }
  }

  /** What a program is handed by a preview with this file. */
  async function handedFrom(file: string): Promise<Handed> {
    await pulumi(['preview', ...of(file)]);
    return JSON.parse(readFileSync(path.join(folder, 'handed.json'), 'utf8')) as Handed;
  }

  async function read(text: string, key: string): Promise<unknown> {
    const values = JSON.parse(await pulumi(['config', '--json', ...of(write(text))]));
    return values[key].objectValue;
  }

  function of(file: string): string[] {
    return ['--stack=case', `--config-file=${file}`];
  }

  function write(text: string): string {
    const file = path.join(folder, 'Pulumi.copy.yaml');
    writeFileSync(file, text);
    return file;
  }

  async function pulumi(words: readonly string[]): Promise<string> {
    const env = {
      ...toolchain.env,
      PULUMI_BACKEND_URL: `file://${path.join(folder, 'state')}`,
      PULUMI_CONFIG_PASSPHRASE: '',
    };
    const { stdout } = await execa(toolchain.pulumi, [...words, '--non-interactive'], { cwd: folder, env });
    return stdout;
  }
});

/** A word in double quotes, of which every reader of YAML knows all characters. */
function escaped(word: string): string {
  const codeOf = (character: string): string => (character.codePointAt(0) ?? 0).toString(16).padStart(8, '0');
  return JSON.stringify(word).replaceAll(/[^ -~]/gu, (character) => `\\U${codeOf(character)}`);
}
