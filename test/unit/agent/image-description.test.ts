import { describe, expect, it } from 'vitest';
import { perform } from '../../../agent/checks.ts';
import { describeImage, entrypointFault } from '../../../agent/image-description.ts';
import type { CommandResult, HttpAnswer } from '../../../agent/outside.ts';
import { preflight } from '../../../agent/preflight.ts';
import { Progress } from '../../../agent/progress.ts';
import { StageFailure } from '../../../agent/stages.ts';
import { Store } from '../../../agent/store.ts';
import { planRelease } from '../../../shape/plan.ts';
import type { Release } from '../../../shape/release.ts';
import { readTemplates } from '../../../templates/templates.ts';
import { suppliedHost, suppliedShape } from '../../fixtures/operator-files.ts';
import { SimulatedHost } from './simulated-host.ts';

const { payload, ...shape } = suppliedShape('glm-w4a16');
const templates = readTemplates();
const secrets = { VLLM_API_KEY: { version: '1' } };
const host = { ...suppliedHost(), memoryGate: undefined };
const planned = (changes: object = {}): Release =>
  planRelease({
    host: { ...host, gpus: [], deviceFiles: [] },
    // The simulated host's payload is not the one on record.
    shape: { ...shape, payload: { ...payload, expected: undefined }, ...changes },
    stack: 'glm-w4a16',
    templates,
    patches: new Map(),
  });
const release = planned();
const { service } = release;

const told = {
  version: '0.19.1',
  flags: { '--seed': { takes: 'value' } },
  toolParsers: ['glm47'],
  reasoningParsers: [],
};

/** A host whose image answers as it is told, and that hears what is asked of the engine. */
class AskedHost extends SimulatedHost {
  answer: Partial<CommandResult> = { stdout: JSON.stringify(told) };
  pullFails = true;
  listed = '';
  environ = '';
  readonly keys: (string | undefined)[] = [];

  override async run(command: string, args: readonly string[]): Promise<CommandResult> {
    if (command === 'systemd-run' && args.includes('--entrypoint=python3')) {
      this.calls.push(`${command} ${args.join(' ')}`);
      return { exitCode: 0, stdout: '', stderr: '', ...this.answer };
    }
    if (command === 'podman' && args[1] === 'ls') return { exitCode: 0, stdout: this.listed, stderr: '' };
    if (command === 'podman' && args[0] === 'pull' && !this.pullFails) {
      this.images.add(args[1] ?? '');
      return { exitCode: 0, stdout: '', stderr: '' };
    }
    if (command === 'podman' && args[0] === 'secret') return { exitCode: 0, stdout: '', stderr: '' };
    return super.run(command, args);
  }

  override async readText(path: string): Promise<string | undefined> {
    return path === '/proc/100/environ' && this.environ !== '' ? this.environ : super.readText(path);
  }

  override async request(
    method: string,
    url: string,
    body: unknown,
    _timeoutSeconds?: number,
    key?: string,
  ): Promise<HttpAnswer> {
    this.keys.push(key);
    return super.request(method, url, body);
  }
}

async function preflightFault(world: AskedHost, wanted = release): Promise<string | undefined> {
  const progress = new Progress(world, async () => undefined);
  try {
    await preflight({ outside: world, service, progress, store: new Store(world, service), release: wanted });
  } catch (error) {
    if (!(error instanceof StageFailure)) throw error;
    return `${error.stage}: ${error.message}`;
  }
  return undefined;
}

describe('an image on a host', () => {
  const { image } = release;

  it('that is there by its digest goes on', async () => {
    expect(await preflightFault(new AskedHost(service, [release]))).toBeUndefined();
  });

  it('that is there under another digest does not, and is told apart from one that is absent', async () => {
    const world = new AskedHost(service, [release]);
    world.images.delete(image);
    world.listed = 'f00\n';
    const other = await preflightFault(world);
    expect(other).toContain('preflight: image: only another digest of the repository is on this host');
    expect(other).toContain('registry is not to be reached');
    expect(other).toContain('skopeo copy --preserve-digests');
    world.listed = '';
    const absent = await preflightFault(world);
    expect(absent).toContain('nothing of the repository is on this host');
    expect(absent).not.toContain('save and load');
  });

  it('that is absent is pulled, by its digest', async () => {
    const world = new AskedHost(service, [release]);
    world.images.delete(image);
    world.pullFails = false;
    expect(await preflightFault(world)).toBeUndefined();
    expect(world.images).toContain(image);
  });
});

describe('the entrypoint of an image', () => {
  it.each([[['vllm', 'serve']], [['/usr/local/bin/vllm', 'serve']]])('may be %j', async (entrypoint) => {
    const world = new AskedHost(service, [release]);
    world.entrypoint = entrypoint;
    expect(await entrypointFault(world, release)).toBeUndefined();
  });

  it.each([
    ['the server as a module', ['python3', '-m', 'vllm.entrypoints.openai.api_server']],
    ['the program alone', ['vllm']],
    ['a whole command', ['vllm', 'serve', '/m']],
    ['a shell', ['/bin/sh', '-c']],
    ['one word', ['vllm serve']],
    ['nothing', null],
    ['an empty list', []],
  ])('must not be %s, which is said before anything stops', async (_what, entrypoint) => {
    const world = new AskedHost(service, [release]);
    world.entrypoint = entrypoint;
    const fault = await preflightFault(world);
    expect(fault).toContain('preflight: arguments: the image begins with');
    expect(fault).toContain(entrypoint?.length ? JSON.stringify(entrypoint) : 'nothing of its own');
    expect(fault).toContain('made for ["vllm","serve"]');
    expect(world.calls.filter((call) => /systemctl stop|--entrypoint=python3/.test(call))).toEqual([]);
  });

  it('is compared as R9V declares it, and only then', async () => {
    const world = new AskedHost(service, [release]);
    world.entrypoint = ['/app/r9v'];
    const { entrypoint: _, ...undeclared } = release;
    expect(await entrypointFault(world, undeclared)).toBeUndefined();
    expect(await entrypointFault(world, { ...release, entrypoint: ['/app/r9v'] })).toBeUndefined();
    expect(await entrypointFault(world, { ...release, entrypoint: ['r9v'] })).toBeUndefined();
    expect(await entrypointFault(world, { ...release, entrypoint: ['/opt/r9v'] })).toContain('/app/r9v');
  });
});

describe('arguments that an image parses', () => {
  it('and refuses are a refusal, in its own words', async () => {
    const world = new AskedHost(service, [release]);
    world.answer = { exitCode: 2, stderr: 'usage: …\nserve: error: unrecognized arguments: --nope\n' };
    expect(await preflightFault(world)).toContain(
      'refuses them: serve: error: unrecognized arguments: --nope',
    );
  });

  it('and cannot judge without a GPU are said to be unjudged', async () => {
    const world = new AskedHost(service, [release]);
    world.answer = { exitCode: 1, stderr: 'RuntimeError: no device' };
    expect(await preflightFault(world)).toBeUndefined();
  });

  it('are all of the release, in order', async () => {
    const world = new AskedHost(service, [release]);
    await preflightFault(world);
    const asked = world.calls.find((call) => call.includes('--entrypoint=python3'));
    expect(asked?.endsWith(release.arguments.join(' '))).toBe(true);
  });
});

describe('an image that is asked what it takes', () => {
  it('tells its entrypoint, flags and parsers, without network and GPU', async () => {
    const world = new AskedHost(service, [release]);
    expect(await describeImage(world, release)).toEqual({ entrypoint: ['vllm', 'serve'], ...told });
    const asked = world.calls.find((call) => call.includes('--entrypoint=python3')) ?? '';
    expect(asked).toContain('--network=none');
    expect(asked).toContain('--pull=never');
    expect(asked).not.toContain('--device');
  });

  it.each([
    ['is not there', { absent: true }, 'is absent on this host'],
    ['has no parser', { answer: { exitCode: 1, stderr: 'no make_arg_parser: x' } }, 'no make_arg_parser'],
    ['is of R9V', { engineKind: 'r9v' as const }, 'by hand'],
    ['answers nothing', { answer: { stdout: '' } }, 'in another form'],
    ['answers in another form', { answer: { stdout: '{"version":"1","flags":[]}' } }, 'in another form'],
    [
      'tells no flag',
      { answer: { stdout: '{"version":"1","flags":{},"toolParsers":[],"reasoningParsers":[]}' } },
      'must hold a flag',
    ],
    ['takes too long', { answer: { exitCode: 124, stderr: 'no end within 330 s' } }, 'no end within'],
  ])('says so where it %s', async (_what, { absent, answer, engineKind }: Oddity, reason) => {
    const world = new AskedHost(service, [release]);
    if (absent) world.images.delete(release.image);
    if (answer) world.answer = answer;
    const asked = { image: release.image, engineKind: engineKind ?? release.engineKind };
    await expect(describeImage(world, asked)).rejects.toThrow(reason);
  });
});

interface Oddity {
  readonly absent?: boolean;
  readonly answer?: Partial<CommandResult>;
  readonly engineKind?: 'r9v';
}

describe('the checks of an engine that asks for a key', () => {
  const [first = { kind: 'models' } as const] = release.checks;
  const guarded = planned({ secrets });

  async function serving(wanted: Release): Promise<AskedHost> {
    const world = new AskedHost(service, [wanted]);
    await world.writeDurably('/run/systemd/system/frank-archon.service', wanted.unit);
    await world.run('systemctl', ['daemon-reload']);
    await world.run('systemctl', ['start']);
    world.letTimePass(10_000);
    return world;
  }

  it('show it as the engine itself has it', async () => {
    const world = await serving(guarded);
    world.environ = 'PATH=/bin\0VLLM_API_KEY=canary=1\0HOME=/root\0';
    await perform(world, guarded, first);
    expect(world.keys).toEqual(['canary=1']);
    expect(world.calls.join('\n')).not.toContain('canary');
  });

  it('fail where the engine has none, before it is asked', async () => {
    const world = await serving(guarded);
    world.environ = 'PATH=/bin\0';
    await expect(perform(world, guarded, first)).rejects.toThrow('has no VLLM_API_KEY');
    expect(world.keys).toEqual([]);
  });

  it('show none where the shape has none', async () => {
    const world = await serving(release);
    world.environ = 'VLLM_API_KEY=of-the-image\0';
    await perform(world, release, first);
    expect(world.keys).toEqual([undefined]);
  });
});
