import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { draftedShape, plannedStack } from '../../../components/planned-shape.ts';
import { hostNamed } from '../../../components/stack-files.ts';
import { problemsOf } from '../../fixtures/problems.ts';

const hostKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f';
const host = { name: 'dankserver', address: '10.0.0.5', hostKey, service: 'frank-archon', gpus: [] };
const shape = {
  host: 'dankserver',
  engine: {
    kind: 'vllm',
    image: { repository: 'docker.io/a/b', digest: `sha256:${'0'.repeat(64)}` },
    servedName: 'glm',
    maxModelLength: 4096,
    gpuMemoryUtilization: 0.9,
    prefixCaching: true,
  },
  payload: { folder: 'glm' },
};
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stack-files-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function write(stack: string, config: object | string): Promise<void> {
  const lines = Object.entries(config).map(([key, value]) => `  ${key}: ${JSON.stringify(value)}\n`);
  const text = typeof config === 'string' ? config : `config:\n${lines.join('')}`;
  await mkdir(join(folder, 'experiments'), { recursive: true });
  await writeFile(join(folder, stack.replace(/([^/]+)$/, 'Pulumi.$1.yaml')), text);
}

/** As Pulumi does: text, or JSON. */
function handed(config: Record<string, unknown>, secretKeys: string[] = []) {
  const values = Object.fromEntries(
    Object.entries(config).map(([key, value]) => [
      key,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  );
  return { values, secretKeys };
}

describe('the configuration of a stack', () => {
  it('is that of its file', async () => {
    await write('dankserver', { 'slot:host': host });
    expect(plannedStack(folder, 'dankserver', handed({ 'slot:host': host }))).toMatchObject({
      kind: 'host',
      host,
    });
  });

  it('is what Pulumi hands over where that is of another file', async () => {
    await write('dankserver', { 'slot:host': { ...host, address: undefined } });
    const lab = { ...host, address: '10.77.0.2' };
    expect(plannedStack(folder, 'dankserver', handed({ 'slot:host': lab }))).toMatchObject({
      host: { address: '10.77.0.2' },
    });
  });

  it('needs no file', () => {
    expect(plannedStack(folder, 'dankserver', handed({ 'slot:host': host }))).toMatchObject({ kind: 'host' });
  });

  it('is read from the file where Pulumi has nothing to hand over', async () => {
    await write('dankserver', { 'slot:host': host });
    expect(plannedStack(folder, 'dankserver', handed({}))).toMatchObject({ kind: 'host', host });
  });

  it('is refused where readers dispute a word of the file, though Pulumi’s reading of it is valid', async () => {
    await write(
      'dankserver',
      `config:\n  slot:host: ${JSON.stringify({ ...host, port: 1 }).replace('"port":1', '"port":017532')}\n`,
    );
    const octal = { 'slot:host': { ...host, port: 0o17532 } };
    expect(() => plannedStack(folder, 'dankserver', handed(octal))).toThrow(/slot:host\.port.*017532/s);
  });

  it('is read as strictly from an experiment of its name', async () => {
    await write('dankserver', { 'slot:host': host });
    const text = JSON.stringify({ ...shape, shortName: 'X' }).replace('"X"', '1.20');
    await write('experiments/arm', `config:\n  slot:shape: ${text}\n`);
    const problems = problemsOf(() =>
      plannedStack(folder, 'arm', handed({ 'slot:shape': { ...shape, shortName: 1.2 } })),
    );
    expect(problems).toEqual([
      {
        file: join(folder, 'experiments/Pulumi.arm.yaml'),
        key: 'slot:shape.shortName',
        value: '1.20',
        limit: 'must be text',
        remedy: "quote it: '1.20'",
      },
    ]);
  });

  it('is refused with a misspelt key that Pulumi hands over, though no file is known', () => {
    const problems = problemsOf(() =>
      plannedStack(folder, 'dankserver', handed({ 'slot:host': host, 'slot:hosts': 'x' })),
    );
    expect(problems).toEqual([
      {
        file: '--config-file in place of Pulumi.dankserver.yaml',
        key: 'slot:hosts',
        value: undefined,
        limit: 'is not a known key',
        remedy: 'did you mean slot:host?',
      },
    ]);
  });

  it('is told how to set a value in a file that Pulumi does not name', () => {
    const wrong = { 'slot:host': { ...host, hostKey: undefined, publicName: 1.2 } };
    const problems = problemsOf(() => plannedStack(folder, 'dankserver', handed(wrong)));
    expect(problems.map(({ remedy }) => remedy)).toEqual([
      expect.stringMatching(/-s dankserver --config-file <file>$/),
      'quote it, as it is written there',
    ]);
  });

  it('names a secret by its path where the file is known, and says nothing of its value', async () => {
    await write('dankserver', { 'slot:host': { ...host, user: { secure: 'v1:x' } } });
    const problems = problemsOf(() =>
      plannedStack(folder, 'dankserver', handed({ 'slot:host': { ...host, user: 'canary' } }, ['slot:host'])),
    );
    expect(problems).toEqual([expect.objectContaining({ key: 'slot:host.user', value: undefined })]);
    expect(JSON.stringify(problems)).not.toContain('canary');
  });

  it('is refused where it holds a secret and no file is known', () => {
    const wrong = handed({ 'slot:host': { ...host, user: 'canary', port: 'canary' } }, ['slot:host']);
    const problems = problemsOf(() => plannedStack(folder, 'dankserver', wrong));
    expect(problems).toEqual([expect.objectContaining({ key: 'slot:host', value: undefined })]);
    expect(JSON.stringify(problems)).not.toContain('canary');
  });

  it('is refused with all that is wrong at once', () => {
    const wrong = handed({ 'slot:host': { ...host, port: 0, user: '' } });
    expect(() => plannedStack(folder, 'dankserver', wrong)).toThrow(/user[\s\S]*port|port[\s\S]*user/);
  });

  it('is refused for a stack without any', () => {
    expect(() => plannedStack(folder, 'new', handed({}))).toThrow(/slot:/);
  });

  it.each(['utf16le', 'latin1'] as const)('is refused in %s', async (encoding) => {
    await writeFile(join(folder, 'Pulumi.dankserver.yaml'), Buffer.from('config: ä\n', encoding));
    expect(problemsOf(() => hostNamed(folder, 'dankserver'))).toHaveLength(1);
  });
});

describe('a shape with its files', () => {
  const wrongModel = 'family: 3\n';

  it('is refused with what is wrong in all of them at once, each by its file', async () => {
    await mkdir(join(folder, 'models'));
    await writeFile(join(folder, 'models', 'glm.yaml'), wrongModel);
    await write('dankserver', { 'slot:host': { ...host, prt: 1, hostKey: undefined } });
    const wrong = { ...shape, model: 'glm', payload: { folder: '../x' } };
    await write('glm', { 'slot:shape': wrong });
    for (const act of [
      () => plannedStack(folder, 'glm', handed({ 'slot:shape': wrong })),
      () => draftedShape(folder, 'glm'),
    ]) {
      const told = problemsOf(act).map(({ file, key }) => `${file.replace(`${folder}/`, '')} ${key}`);
      expect(told).toEqual(
        expect.arrayContaining([
          'Pulumi.glm.yaml slot:shape.payload.folder',
          'Pulumi.dankserver.yaml slot:host.prt',
          'Pulumi.dankserver.yaml slot:host.hostKey',
          'models/glm.yaml family',
          'models/glm.yaml name',
        ]),
      );
    }
  });

  it('is told as well what is missing in the files that are right', async () => {
    await write('dankserver', { 'slot:host': { ...host, hostKey: undefined, gpus: undefined } });
    await write('glm', { 'slot:shape': { ...shape, payload: {}, hots: 1 } });
    expect(problemsOf(() => draftedShape(folder, 'glm')).map(({ key }) => key)).toEqual(
      expect.arrayContaining([
        'slot:shape.hots',
        'slot:shape.payload.folder',
        'slot:host.hostKey',
        'slot:host.gpus',
      ]),
    );
  });

  it('is told what is missing where shape and host do not fit', async () => {
    await write('dankserver', { 'slot:host': { ...host, hostKey: undefined } });
    await write('glm', { 'slot:shape': { ...shape, state: { a: '/elsewhere' } } });
    expect(problemsOf(() => draftedShape(folder, 'glm')).map(({ key }) => key)).toEqual([
      'slot:shape.state.a',
      'slot:host.hostKey',
    ]);
  });

  it('is told the login of its host where a command on it finds what is missing', async () => {
    await write('dankserver', { 'slot:host': { ...host, user: 'op', sshPort: 2222, hostKey: undefined } });
    await write('glm', {
      'slot:shape': { ...shape, engine: { ...shape.engine, image: { repository: 'docker.io/a/b' } } },
    });
    const { missing } = draftedShape(folder, 'glm');
    const digest = missing.find(({ key }) => key === 'slot:shape.engine.image.digest');
    expect(digest?.remedy).toContain(
      "ssh -p 2222 op@10.0.0.5 'sudo podman image ls --digests docker.io/a/b'",
    );
  });

  it.each(['hosts', 'elsewhere'])('finds its host in %s where it says so', async (place) => {
    await mkdir(join(folder, place));
    await writeFile(
      join(folder, place, 'Pulumi.dankserver.yaml'),
      JSON.stringify({ config: { 'slot:host': host } }),
    );
    await write('glm', { 'slot:shape': shape, 'slot:hostsFolder': place });
    expect(draftedShape(folder, 'glm')).toMatchObject({ host, missing: [] });
  });

  it('is refused with a model that has no file', async () => {
    await write('dankserver', { 'slot:host': host });
    await write('glm', { 'slot:shape': { ...shape, model: 'gml' } });
    expect(problemsOf(() => draftedShape(folder, 'glm'))).toEqual([
      expect.objectContaining({ key: 'slot:shape.model', value: 'gml' }),
    ]);
  });

  it.each(['../../secret', 'a/b', '', 'constructor '])(
    'is refused with the model %j, and no file is opened',
    async (model) => {
      await write('dankserver', { 'slot:host': host });
      await write('glm', { 'slot:shape': { ...shape, model } });
      expect(problemsOf(() => draftedShape(folder, 'glm')).map(({ key }) => key)).toContain(
        'slot:shape.model',
      );
    },
  );
});

describe('a stack that has no file', () => {
  it('is refused with those that there are, the nearest first', async () => {
    await write('dankserver', { 'slot:host': host });
    await write('glm-w4a16', { 'slot:shape': shape });
    await write('experiments/glm-mtp4', { 'slot:shape': shape });
    const [problem] = problemsOf(() => draftedShape(folder, 'glm-w4a6'));
    expect(problem?.remedy).toContain('did you mean glm-w4a16?');
    expect(problem?.remedy).toContain('known here: dankserver, glm-w4a16, glm-mtp4');
  });

  it.each(['../outside', 'constructor', '.', ''])('is refused when it is %j', async (stack) => {
    await write('dankserver', { 'slot:host': host });
    expect(problemsOf(() => draftedShape(folder, stack))).toHaveLength(1);
  });
});

describe('a host named by a shape', () => {
  it('is read from its own stack file', async () => {
    await write('dankserver', { 'slot:host': host });
    expect(hostNamed(folder, 'dankserver')).toMatchObject(host);
  });

  it('is refused where there is no such file, with the folder that was looked in', () => {
    expect(() => hostNamed(folder, 'other')).toThrow(join(folder, 'Pulumi.other.yaml'));
  });

  it('is refused where the file describes a shape', async () => {
    await write('glm', { 'slot:shape': {} });
    expect(() => hostNamed(folder, 'glm')).toThrow();
  });
});
