import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadStackFile } from '../../shape/configuration.ts';
import { disputeOver } from '../../shape/plain-scalars.ts';
import { prepareToolchain, type Toolchain } from '../../toolchain/prepare.ts';
import { hostileWords } from '../fixtures/hostile-words.ts';
import { completedFile, operatorFile, shapeStacks } from '../fixtures/operator-files.ts';

/** Characters of which the words are made that YAML readers type differently. */
const wordUnits = '0123456789_.:+-eExobaBfFnNyYtTrusl~=<TZ';

describe('what Pulumi reads in a stack file', () => {
  let toolchain: Toolchain;
  let folder: string;

  beforeAll(async () => {
    toolchain = await prepareToolchain();
    folder = mkdtempSync(path.join(tmpdir(), 'slot-config-'));
    mkdirSync(path.join(folder, 'state'));
    writeFileSync(path.join(folder, 'Pulumi.yaml'), 'name: slot\nruntime: nodejs\n');
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
  ])('differs from what is written in %s, which the loader refuses', async (word, taken) => {
    expect(await read(`config:\n  slot:shape:\n    word: ${word}\n`, 'slot:shape')).toEqual({ word: taken });
    expect(disputeOver(word)).toBeTypeOf('string');
  });

  it('keeps a PCI address text where `pulumi config set` writes it', async () => {
    const file = write(operatorFile('dankserver'));
    await pulumi(['config', 'set', '--path', 'slot:host.gpus[0]', '0000:03:00.0', ...of(file)]);
    const values = JSON.parse(await pulumi(['config', '--json', ...of(file)]));
    expect(values['slot:host'].objectValue.gpus).toEqual(['0000:03:00.0']);
    expect(() => loadStackFile('Pulumi.dankserver.yaml', readFileSync(file, 'utf8'))).not.toThrow('gpus');
  });

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
