import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { completedFile, operatorFile, shapeStacks } from '../../fixtures/operator-files.ts';
import { startLanguageServer } from './language-server.ts';

const project = fileURLToPath(new URL('../../..', import.meta.url));
const modeline = '# yaml-language-server: $schema=./stack.schema.json';
let server: Awaited<ReturnType<typeof startLanguageServer>>;
let opened = 0;

beforeAll(async () => {
  server = await startLanguageServer(project);
});
afterAll(() => {
  server.stop();
});

/** A file that is open in the editor and not on disk. */
async function open(text: string) {
  opened += 1;
  const path = join(project, `Pulumi.open-${opened}.yaml`);
  // The fixtures name the schema from where they lie.
  const diagnostics = await server.diagnose(path, text.replace(/\$schema=\S*\//, '$schema=./'));
  return { path, diagnostics };
}

/** What is offered where `|` stands in the text. */
async function offered(text: string): Promise<readonly string[]> {
  const before = text.slice(0, text.indexOf('|')).split('\n');
  const { path } = await open(text.replace('|', ''));
  return server.complete(path, before.length - 1, before.at(-1)?.length ?? 0);
}

const files = [
  ...readdirSync(project).filter((name) => /^Pulumi\..+\.yaml$/.test(name)),
  ...['experiments', 'models', 'images'].flatMap((folder) =>
    readdirSync(join(project, folder))
      .filter((name) => name.endsWith('.yaml'))
      .map((name) => join(folder, name)),
  ),
];

// The server thinks for a while about each file: all at once.
describe.concurrent('an editor', () => {
  it.each(files)('knows the schema of %s, and marks nothing in it', async (file) => {
    const text = readFileSync(join(project, file), 'utf8');
    expect(text).toMatch(/^# yaml-language-server: \$schema=\S+\.schema\.json\n/);
    expect(await server.diagnose(join(project, file), text)).toEqual([]);
  });

  it.each([...shapeStacks, 'dankserver'])('marks nothing in %s where all is supplied', async (stack) => {
    const { diagnostics } = await open(completedFile(stack));
    expect(diagnostics).toEqual([]);
  });

  it('marks nothing of Pulumi and of other packages', async () => {
    const text = `${operatorFile('dankserver')}  docker:host: ssh://x\n  other:list: [1]\nencryptionsalt: v1:x\n`;
    expect((await open(text)).diagnostics).toEqual([]);
  });

  it.each([
    ['an unknown key', 'maxModelLength: 131072', 'maxModelLen: 131072', 'maxModelLen'],
    ['a key that another kind of engine has', 'prefixCaching: true', 'healthPath: /h', 'healthPath'],
    ['a text for a number', 'maxModelLength: 131072', 'maxModelLength: long', 'integer'],
    ['a number out of range', 'gpuMemoryUtilization: 0.98', 'gpuMemoryUtilization: 1.5', 'maximum of 1'],
    ['a word for a truth', 'prefixCaching: true', 'prefixCaching: yes', 'boolean'],
    ['a number for a size', 'memlock: infinity', 'memlock: 8192', 'string'],
    [
      'a size without unit',
      'prefixCaching: true',
      "prefixCaching: true\n      kvCacheMemory: '8192'",
      'number and one of the units B, KiB',
    ],
    ['a duration in a unit of its own', 'boot: 25 min', 'boot: 25 minutes', 'one of the units ms, s, min, h'],
    ['a name that is none', 'shortName: glm', 'shortName: GLM', 'begin and end with a letter or digit'],
    ['a missing key', 'servedName: glm53-flash\n', '', 'servedName'],
    ['a misspelt key of the namespace', '  slot:shape:', '  slot:shap: x\n  slot:shape:', 'slot:shap'],
    ['a key without namespace', '  slot:shape:', '  shape: x\n  slot:shape:', 'shape'],
    ['a section that there is not', 'config:', 'confg: {}\nconfig:', 'confg'],
    [
      'a value in plain text where a secret belongs',
      '  slot:shape:',
      '  slot:secrets: {A: x}\n  slot:shape:',
      'object',
    ],
  ])('marks %s', async (_what, written, wrong, told) => {
    const text = operatorFile('glm-w4a16');
    expect(text).toContain(written);
    const { diagnostics } = await open(text.replace(written, wrong));
    expect(diagnostics.map(({ message }) => message).join('\n')).toContain(told);
  });

  it.each([
    ['the keys of the namespace', '  |\n', 'slot:shape'],
    ['the keys of a shape', '  slot:shape:\n    |\n', 'deadlines'],
    ['the keys of a host', '  slot:host:\n    |\n', 'hostKey'],
    ['the keys of an engine', '  slot:shape:\n    engine:\n      kind: vllm\n      max|\n', 'maxModelLength'],
    ['the kinds of engine', '  slot:shape:\n    engine:\n      kind: |\n', 'r9v'],
    [
      'the rules that a shape can be excepted from',
      '  slot:shape:\n    exceptions:\n      |\n',
      'nccl-protocol',
    ],
    ['the values of a key', '  slot:host:\n    selinux: |\n', 'enforcing'],
    ['the default of a key', '  slot:shape:\n    deadlines:\n      boot: |\n', '20 min'],
  ])('offers %s', async (_what, body, label) => {
    expect(
      (await offered(`${modeline}\nconfig:\n${body}`)).map((offer) => offer.replaceAll('"', '')),
    ).toContain(label);
  });

  it('does not offer an exception from a rule that holds for every shape', async () => {
    const rules = await offered(`${modeline}\nconfig:\n  slot:shape:\n    exceptions:\n      |\n`);
    expect(rules).not.toContain('image-by-digest');
    expect(rules).not.toContain('no-secret-in-unit');
  });

  it('does not offer the keys of one kind of engine to the other', async () => {
    const keys = await offered(
      `${modeline}\nconfig:\n  slot:shape:\n    engine:\n      kind: r9v\n      |\n`,
    );
    expect(keys).toContain('healthPath');
    expect(keys).not.toContain('toolParser');
  });
});
