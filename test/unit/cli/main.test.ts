import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const program = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url));
const hostKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f';
const digest = `sha256:${'a'.repeat(64)}`;
const host = {
  name: 'dankserver',
  // Port 9 of this machine: nobody answers.
  address: '127.0.0.1',
  sshPort: 9,
  hostKey,
  service: 'frank-archon',
  gpus: [],
};
const shape = {
  host: 'dankserver',
  shortName: 'glm',
  engine: {
    kind: 'vllm',
    image: { repository: 'docker.io/example/vllm', digest },
    servedName: 'glm53-flash',
    maxModelLength: 131072,
    gpuMemoryUtilization: 0.98,
    prefixCaching: true,
    toolParser: 'glm47',
    reasoningParser: 'glm47',
  },
  payload: { folder: 'GLM' },
  environment: { GREETING: '100 % "$HOME"', VLLM_ENGINE_READY_TIMEOUT_S: '1200' },
};
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'slot-cli-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function write(stack: string, config: object): Promise<void> {
  return writeFile(join(folder, `Pulumi.${stack}.yaml`), JSON.stringify({ config }, null, 2));
}

interface Answer {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

function slot(...words: string[]): Promise<Answer> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...words], (error, stdout, stderr) => {
      resolve({ exitCode: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

describe('the command line', () => {
  it('lists its commands when nothing is asked', async () => {
    const { exitCode, stdout } = await slot();
    expect(exitCode).toBe(0);
    for (const command of [
      'status [<host>] [--json]',
      'plan [<stack> …]',
      'preflight <stack>',
      'rollback',
      'release forgive',
    ]) {
      expect(stdout).toContain(`slot ${command}`);
    }
  });

  it.each([
    [['statsu'], 'did you mean "status"'],
    [['release', 'forgiv', 'abc'], 'did you mean "release forgive"'],
    [['release'], 'did you mean "release forgive"'],
    [['image', 'lern', 'a'], 'did you mean "image learn"'],
    [['payload'], 'there are payload seal, payload import, payload verify'],
    [['patch', 'status'], 'there are patch check, '],
    [['preflight'], 'usage: slot preflight <stack>'],
    [['preflight', 'a', 'b'], 'usage: slot preflight <stack>'],
    [['plan', 'a', '--json'], 'slot plan has no --json'],
    [['status', '--jsno'], "Unknown option '--jsno'"],
    [['release', 'forgive'], 'usage: slot release forgive <release> [<host>]'],
  ])('refuses %j', async (words, message) => {
    const { exitCode, stdout, stderr } = await slot(...words);
    expect(stderr).toContain(message);
    expect(exitCode).toBe(64);
    expect(stdout).toBe('');
  });
});

describe('slot plan', () => {
  it('prints unit, environment and engine identity without a host or Pulumi', async () => {
    await write('dankserver', { 'slot:host': host });
    await write('glm', { 'slot:shape': shape });
    const { exitCode, stdout } = await slot('plan', 'glm', '--folder', folder);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/# engine identity [0-9a-f]{64}\n/);
    expect(stdout).toContain('--max-model-len 131072');
    expect(stdout).toContain('\nGREETING=100 % "$HOME"\n');
  });

  it('says what is missing, without a stack trace, and draws the rest', async () => {
    await write('dankserver', { 'slot:host': host });
    await write('glm', {
      'slot:shape': {
        ...shape,
        engine: { ...shape.engine, image: { repository: 'docker.io/example/vllm' } },
      },
    });
    const { exitCode, stderr } = await slot('plan', 'glm', '--folder', folder);
    expect(exitCode).toBe(0);
    expect(stderr).toContain('slot:shape.engine.image.digest');
    expect(stderr).not.toContain('    at ');
  });

  it.each<[string, (path: string) => Promise<unknown>]>([
    ['a folder', (path) => mkdir(path)],
    ['a link to itself', (path) => symlink(path, path)],
    ['a pipe, which nobody fills', (path) => promisify(execFile)('mkfifo', [path])],
    ['no UTF-8', (path) => writeFile(path, Buffer.from([0xff, 0xfe, 0x00]))],
  ])('goes on with the other shapes where a stack file is %s', async (_what, make) => {
    await write('dankserver', { 'slot:host': host });
    await write('glm', { 'slot:shape': shape });
    await make(join(folder, 'Pulumi.aaa.yaml'));
    const { exitCode, stdout, stderr } = await slot('plan', '--folder', folder);
    expect(exitCode).toBe(1);
    expect(stdout).toContain('# glm: release ');
    expect(stderr).toContain('Pulumi.aaa.yaml: must be');
    expect(stderr).not.toContain('    at ');
  });

  it('does not print the secret for which a rule refuses the shape', async () => {
    await write('dankserver', { 'slot:host': host });
    const environment = { HF_TOKEN: `hf_${'a1'.repeat(12)}` };
    await write('glm', { 'slot:shape': { ...shape, environment } });
    const { exitCode, stdout, stderr } = await slot('plan', 'glm', '--folder', folder);
    expect(exitCode).toBe(1);
    expect(stdout).toContain('refuse no-secret-');
    expect(stdout + stderr).not.toContain(environment.HF_TOKEN);
  });

  it('names the file that is not there', async () => {
    const { exitCode, stderr } = await slot('plan', 'nothing', '--folder', folder);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(join(folder, 'Pulumi.nothing.yaml'));
  });

  it('refuses the stack of a host', async () => {
    await write('dankserver', { 'slot:host': host });
    const { exitCode, stderr } = await slot('plan', 'dankserver', '--folder', folder);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('describes a host');
  });
});

describe('slot status', () => {
  it('takes the one host there is, and says why it cannot be reached', async () => {
    await write('dankserver', { 'slot:host': host });
    await write('glm', { 'slot:shape': shape });
    const { exitCode, stderr } = await slot('status', '--folder', folder);
    expect(stderr).toContain('dank@127.0.0.1:9: not reachable');
    expect(stderr).not.toContain('    at ');
    expect(exitCode).toBe(1);
  });

  it('asks which host is meant where there are two', async () => {
    await write('dankserver', { 'slot:host': host });
    await write('other', { 'slot:host': { ...host, name: 'other' } });
    const { exitCode, stderr } = await slot('status', '--folder', folder);
    expect(stderr).toContain('say which host: dankserver, other');
    expect(exitCode).toBe(64);
  });

  it('says that there is no host file', async () => {
    const { exitCode, stderr } = await slot('status', '--folder', folder);
    expect(stderr).toContain('there is no host file');
    expect(exitCode).toBe(64);
  });
});
