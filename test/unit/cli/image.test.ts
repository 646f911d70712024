import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { imageFileName, knowledgeFrom, learn, textOf } from '../../../cli/image.ts';
import { loadImageKnowledge } from '../../../shape/configuration.ts';
import type { ImageDescription } from '../../../shape/engines/image-knowledge.ts';
import { completedFile } from '../../fixtures/operator-files.ts';

const ssh = vi.hoisted(() => ({
  calls: [] as { command: string; input: string | undefined }[],
  answer: { exitCode: 0, stdout: '', stderr: '' },
}));

vi.mock(import('../../../remote/ssh.ts'), async (importActual) => ({
  ...(await importActual()),
  runOnHost: async (_target, command, options) => {
    ssh.calls.push({ command, input: options?.input });
    return ssh.answer;
  },
}));

const image = `docker.io/tcclaviger/vllm@sha256:da4029666${'0'.repeat(55)}`;
const file = 'images/vllm-da4029666000.yaml';
const description: ImageDescription = {
  version: '0.19.1',
  entrypoint: ['vllm', 'serve'],
  flags: { '--seed': { takes: 'value' }, '--dtype': { takes: 'value', choices: ['on', '1.20', 'auto'] } },
  toolParsers: ['hermes', 'glm47'],
  reasoningParsers: ['qwen3'],
};

let folder: string;
let said: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slot-learn-'));
  for (const stack of ['dankserver', 'glm-w4a16'])
    writeFileSync(join(folder, `Pulumi.${stack}.yaml`), completedFile(stack));
  cpSync(join(import.meta.dirname, '../../../models'), join(folder, 'models'), { recursive: true });
  ssh.calls.length = 0;
  ssh.answer = { exitCode: 0, stdout: JSON.stringify(description), stderr: '' };
  said = '';
  const hear = (text: string | Uint8Array): boolean => {
    said += text;
    return true;
  };
  vi.spyOn(process.stdout, 'write').mockImplementation(hear);
  vi.spyOn(process.stderr, 'write').mockImplementation(hear);
  vi.useFakeTimers({ now: new Date('2026-11-29T23:00:00Z'), toFake: ['Date'] });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  rmSync(folder, { recursive: true });
});

const written = (): string => readFileSync(join(folder, file), 'utf8');

describe('slot image learn', () => {
  it("asks the shape's host for its image and writes what it tells, sorted and quoted", async () => {
    expect(await learn(folder, 'glm-w4a16')).toBe(0);
    expect(ssh.calls[0]?.command).toContain('slot describe-image');
    expect(JSON.parse(ssh.calls[0]?.input ?? '')).toEqual({ image, engineKind: 'vllm' });
    expect(said).toContain(`${file}: 2 flags, 2 tool parsers, 1 reasoning parsers`);
    expect(written()).toBe(`# yaml-language-server: $schema=./image.schema.json
digest: "sha256:da4029666${'0'.repeat(55)}"
engine: "vllm"
version: "0.19.1"
source: "the image itself, by slot image learn"
taken: "2026-11-29"
complete: true
entrypoint:
  - "vllm"
  - "serve"
toolParsers:
  - "glm47"
  - "hermes"
reasoningParsers:
  - "qwen3"
flags:
  "--dtype": {"takes":"value","choices":["on","1.20","auto"]}
  "--seed": {"takes":"value"}
`);
    expect(readdirSync(join(folder, 'images'))).toEqual(['vllm-da4029666000.yaml']);
  });

  it('leaves the file as it is where nothing but the day is new', async () => {
    await learn(folder, 'glm-w4a16');
    const before = written();
    vi.setSystemTime(new Date('2027-01-01T00:00:00Z'));
    expect(await learn(folder, 'glm-w4a16')).toBe(0);
    expect(written()).toBe(before);
    expect(said).toContain('says so since 2026-11-29');
  });

  it('writes anew what has changed', async () => {
    await learn(folder, 'glm-w4a16');
    ssh.answer.stdout = JSON.stringify({ ...description, flags: { '--dtype': { takes: 'value' } } });
    await learn(folder, 'glm-w4a16');
    expect(written()).not.toContain('--seed');
  });

  it('writes nothing where the image cannot tell', async () => {
    ssh.answer = { exitCode: 70, stdout: '', stderr: '' };
    expect(await learn(folder, 'glm-w4a16')).toBe(70);
    expect(existsSync(join(folder, 'images'))).toBe(false);
    expect(said).toContain('nothing was written');
  });

  it.each([
    '',
    'podman: command not found',
    '{}',
    '[]',
    'null',
    '3',
    '{"version":',
    JSON.stringify({ ...description, flags: { seed: { takes: 'value' } } }),
    JSON.stringify({ ...description, flags: {} }),
    JSON.stringify({ ...description, flags: null }),
    JSON.stringify({ ...description, version: '' }),
    JSON.stringify({ ...description, entrypoint: 'vllm' }),
  ])('writes nothing and says so in one line where the answer is %j', async (stdout) => {
    ssh.answer.stdout = stdout;
    expect(await learn(folder, 'glm-w4a16')).toBe(1);
    expect(existsSync(join(folder, 'images'))).toBe(false);
    expect(said).toMatch(/\ndankserver answered in another form [^\n]*nothing was written[^\n]*\n$/);
  });

  it('leaves a file as it is where the answer has no flags', async () => {
    await learn(folder, 'glm-w4a16');
    const before = written();
    ssh.answer.stdout = JSON.stringify({ ...description, flags: {} });
    expect(await learn(folder, 'glm-w4a16')).toBe(1);
    expect(written()).toBe(before);
  });

  it.each([true, false])(
    'keeps what no image says of itself: an RCCL that is fixed, %s',
    async (rcclFixed) => {
      await learn(folder, 'glm-w4a16');
      writeFileSync(join(folder, file), `${written()}rcclFixed: ${rcclFixed}\n`);
      ssh.answer.stdout = JSON.stringify({ ...description, version: '0.20.0' });
      await learn(folder, 'glm-w4a16');
      expect(written()).toContain(`rcclFixed: ${rcclFixed}\n`);
      expect(written()).toContain('0.20.0');
      await learn(folder, 'glm-w4a16');
      expect(said).toContain('says so since');
    },
  );

  it('keeps it of the record in place of which the file counts from now on', async () => {
    mkdirSync(join(folder, 'images'));
    const record = {
      ...knowledgeFrom(description, { image, engineKind: 'vllm' }, '2026-10'),
      rcclFixed: true,
    };
    const recorded = textOf({ ...record, digest: 'sha256:da4029666' });
    writeFileSync(join(folder, 'images/record.yaml'), recorded);
    const other = textOf({ ...record, digest: 'sha256:ffff', rcclFixed: false });
    writeFileSync(join(folder, 'images/other.yaml'), other);
    await learn(folder, 'glm-w4a16');
    expect(written()).toContain('rcclFixed: true\n');
    expect(readFileSync(join(folder, 'images/record.yaml'), 'utf8')).toBe(recorded);
  });

  it('writes anew the file that names the whole digest, whatever it is called', async () => {
    mkdirSync(join(folder, 'images'));
    const own = textOf(knowledgeFrom(description, { image, engineKind: 'vllm' }, '2026-10-01'));
    writeFileSync(join(folder, 'images/mine.yaml'), own);
    ssh.answer.stdout = JSON.stringify({ ...description, version: '0.20.0' });
    await learn(folder, 'glm-w4a16');
    expect(readdirSync(join(folder, 'images'))).toEqual(['mine.yaml']);
  });

  it('asks nobody for a host', async () => {
    await expect(learn(folder, 'dankserver')).rejects.toThrow('describes a host');
    expect(ssh.calls).toEqual([]);
  });
});

it('what is written is read as it was told, whatever words it holds', () => {
  const word = fc.string({ minLength: 1 }).filter((text) => text.isWellFormed() && !/[\0\n\r]/.test(text));
  fc.assert(
    fc.property(fc.array(word, { minLength: 1 }), fc.uniqueArray(word), (choices, toolParsers) => {
      const told = { ...description, toolParsers, flags: { '--x': { takes: 'value' as const, choices } } };
      const knowledge = knowledgeFrom(told, { image, engineKind: 'vllm' }, '2026-11-29');
      expect(loadImageKnowledge(file, textOf(knowledge))).toEqual(knowledge);
    }),
  );
});

it('a file is named after image and digest', () => {
  expect(imageFileName(image)).toBe('vllm-da4029666000');
  expect(imageFileName(`localhost:5000/x@sha256:${'1'.repeat(64)}`)).toBe('x-111111111111');
});
