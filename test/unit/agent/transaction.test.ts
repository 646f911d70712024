import { describe, expect, it } from 'vitest';
import { Progress } from '../../../agent/progress.ts';
import { Store } from '../../../agent/store.ts';
import { cutover, recover, type TransactionContext, vacate } from '../../../agent/transaction.ts';
import { namesOf } from '../../../shape/names.ts';
import { type Claim, claimOf, type Release, releaseIdOf, sha256 } from '../../../shape/release.ts';
import { Killed, SimulatedHost } from './simulated-host.ts';

const service = 'frank-archon';

function releaseOf(shape: string, changes: Partial<Release> = {}): Release {
  return {
    version: 1,
    service,
    shape,
    container: `${service}-${shape}`,
    engineKind: 'vllm',
    engineIdentity: sha256(shape),
    image: `docker.io/tcclaviger/vllm@sha256:${sha256('image')}`,
    arguments: ['--model', '/model', '--served-model-name', shape],
    environment: { PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True' },
    secrets: [],
    unit: `[Service]\nExecStart=/usr/bin/podman run ${shape}\n`,
    target: '[Unit]\n',
    patches: [],
    payload: { folder: `/home/dank/models/${shape}` },
    stateFolders: [],
    port: 7770,
    healthPath: '/health',
    servedNames: [shape, 'wire'],
    maxModelLength: 131072,
    memlock: 'infinity',
    deviceFiles: [],
    gpus: [],
    gpuMemoryUtilization: 0.9,
    memoryGateBytes: 0,
    deadlines: { drainSeconds: 0, stopSeconds: 60, bootSeconds: 1200, checkSeconds: 60, settleSeconds: 10 },
    checks: [
      { kind: 'models' },
      { kind: 'completion', servedName: shape, prompt: 'What is 2+2?', expect: '4', maxTokens: 64 },
      { kind: 'tool-call', servedName: shape, maxTokens: 64 },
    ],
    ...changes,
  };
}

const qwen = releaseOf('qwen');
const glm = releaseOf('glm');

class World {
  readonly host: SimulatedHost;
  readonly context: TransactionContext;
  readonly store: Store;

  constructor(releases: readonly Release[] = [qwen, glm]) {
    this.host = new SimulatedHost(service, releases);
    this.store = new Store(this.host, service);
    this.context = {
      outside: this.host,
      service,
      store: this.store,
      by: 'dank',
      progress: new Progress(this.host, async () => undefined),
    };
  }

  async claim(release: Release): Promise<Claim> {
    const { epoch, occupant } = await this.store.slot();
    return claimOf({ epoch, occupant: occupant?.shape }, release);
  }

  async cutover(release: Release, claim?: Claim) {
    const own = claim ?? (await this.claim(release));
    return cutover(this.context, { release, claim: own, expectedEpoch: own.epoch });
  }
}

async function worldServing(release: Release, releases?: readonly Release[]): Promise<World> {
  const world = new World(releases);
  const outcome = await world.cutover(release);
  expect(outcome).toMatchObject({ kind: 'serving', serves: release.shape });
  world.host.calls.length = 0;
  return world;
}

describe('a cutover', () => {
  it('ends with the new shape committed, enabled and on record', async () => {
    const world = await worldServing(qwen);
    const outcome = await world.cutover(glm);
    expect(outcome).toMatchObject({ kind: 'serving', serves: 'glm', epoch: 2 });
    expect(world.host.serves()).toBe('glm');
    const names = namesOf(service);
    expect(world.host.files.get(names.committedUnitPath)).toBe(glm.unit);
    expect(world.host.files.has(names.trialUnitPath)).toBe(false);
    expect(world.host.enabled).toEqual(new Set([names.unit, names.target]));
    expect((await world.store.slot()).previousReleaseId).toBe(releaseIdOf(qwen));
  });

  it('has systemd read the new unit while the old engine serves: it takes long and nobody waits for it', async () => {
    const world = await worldServing(qwen);
    await world.cutover(glm);
    const { calls } = world.host;
    const outage = calls.slice(
      calls.findIndex((call) => call.startsWith('systemctl stop')),
      calls.findIndex((call) => call.startsWith('systemctl start')),
    );
    expect(outage.length).toBeGreaterThan(1);
    expect(outage).not.toContain('systemctl daemon-reload');
    expect(calls.indexOf('systemctl daemon-reload')).toBeGreaterThan(-1);
  });

  it('does not touch an engine that has the wanted identity already', async () => {
    const world = await worldServing(qwen);
    const changed = { ...qwen, checks: qwen.checks.slice(0, 1) };
    const before = world.host.engine?.invocation;
    const outcome = await world.cutover(changed);
    expect(outcome).toMatchObject({ kind: 'serving', outageSeconds: 0 });
    expect(world.host.engine?.invocation).toBe(before);
    expect((await world.store.slot()).occupant?.releaseId).toBe(releaseIdOf(changed));
  });

  it('records no release whose hashes do not hold, though its engine runs already', async () => {
    const world = await worldServing(qwen);
    const sealed = { ...qwen, payload: { ...qwen.payload, verify: 'hashes' as const } };
    const before = world.host.engine?.invocation;
    const outcome = await world.cutover(sealed);
    expect(outcome).toMatchObject({ kind: 'refused', stage: 'record: payload hashes', serves: 'qwen' });
    expect(outcome.message).toContain('has no manifest: npx slot payload seal qwen');
    expect(world.host.engine?.invocation).toBe(before);
    expect((await world.store.slot()).occupant?.releaseId).toBe(releaseIdOf(qwen));
  });

  it('records no release whose patches cannot be made from the image, though its engine runs already', async () => {
    const world = await worldServing(qwen);
    const hash = 'a'.repeat(64);
    const patched = { target: '/opt/vllm/model.py', baseSha256: hash, patchedSha256: hash, diffs: [] };
    const outcome = await world.cutover({ ...qwen, patches: [patched] });
    expect(outcome).toMatchObject({ kind: 'refused', stage: 'record: patches', serves: 'qwen' });
    expect((await world.store.slot()).occupant?.releaseId).toBe(releaseIdOf(qwen));
  });

  it('waits for an engine that is still loading and does not restart it', async () => {
    const world = await worldServing(qwen);
    world.host.reboot();
    expect(world.host.serves()).toBeUndefined();
    const starts = world.host.starts;
    expect(await world.cutover({ ...qwen, checks: [] })).toMatchObject({ kind: 'serving' });
    expect(world.host.starts).toBe(starts);
  });

  it('restarts an engine of the same identity that is broken', async () => {
    const world = await worldServing(qwen);
    world.host.engine = undefined;
    expect(await world.cutover({ ...qwen, checks: qwen.checks.slice(0, 2) })).toMatchObject({
      kind: 'serving',
    });
    expect(world.host.serves()).toBe('qwen');
  });
});

describe('before the stop, a cutover is refused with nothing touched', () => {
  const cases: Record<string, (world: World) => void> = {
    'preflight: image': (world) => void world.host.images.delete(glm.image),
    'preflight: payload': (world) => void world.host.folders.delete(glm.payload.folder),
    'preflight: no foreign occupant': (world) => {
      world.host.dropIns = '/etc/systemd/system/frank-archon.service.d/old.conf';
    },
  };
  for (const [stage, arrange] of Object.entries(cases)) {
    it(`at ${stage}`, async () => {
      const world = await worldServing(qwen);
      arrange(world);
      const engine = world.host.engine;
      const outcome = await world.cutover(glm);
      expect(outcome).toMatchObject({ kind: 'refused', stage, serves: 'qwen', outageSeconds: 0 });
      expect(world.host.engine).toBe(engine);
      expect(world.host.calls.filter((call) => /systemctl (stop|start)/.test(call))).toEqual([]);
    });
  }

  it('when the epoch moved', async () => {
    const world = await worldServing(qwen);
    const stale = await world.claim(glm);
    await world.cutover(glm);
    const outcome = await world.cutover({ ...qwen, port: 7770 }, { ...stale, token: 'stale' });
    expect(outcome).toMatchObject({ kind: 'refused', stage: 'epoch', serves: 'glm' });
    expect(outcome.message).toContain('moved by dank');
  });

  it('when a unit of this name was made by hand', async () => {
    const world = new World();
    world.host.files.set(namesOf(service).committedUnitPath, '[Service]\nExecStart=/bin/by-hand\n');
    expect(await world.cutover(glm)).toMatchObject({
      kind: 'refused',
      stage: 'preflight: no foreign occupant',
    });
  });

  it('when a drop-in waits for a unit that is not there yet', async () => {
    const world = new World();
    world.host.files.set(
      '/etc/systemd/system/frank-archon.service.d/old.conf',
      '[Service]\nLimitMEMLOCK=1M\n',
    );
    const outcome = await world.cutover(glm);
    expect(outcome).toMatchObject({ kind: 'refused', stage: 'preflight: no foreign occupant' });
    expect(outcome.message).toContain('old.conf');
  });

  it('when somebody masked the unit', async () => {
    const world = await worldServing(qwen);
    world.host.links.set(namesOf(service).trialUnitPath, '/dev/null');
    const outcome = await world.cutover(glm);
    expect(outcome).toMatchObject({ kind: 'refused', stage: 'preflight: no foreign occupant' });
    expect(outcome.message).toContain('unmask --runtime');
  });
});

describe('after the stop, a release that fails is replaced by what served before', () => {
  const faults = {
    'prove: ready': { dies: 'at load' },
    'prove: served names': { servedNames: ['other', 'wire'] },
    'prove: completion as glm': { emptyCompletions: true },
    'prove: locked memory is what the shape asks for': { memlock: '8388608' },
  } as const;
  for (const [stage, behaviour] of Object.entries(faults)) {
    it(`when it fails at ${stage}`, async () => {
      const world = await worldServing(qwen);
      const before = (await world.store.slot()).occupant;
      world.host.behaviours.set('glm', behaviour);
      const outcome = await world.cutover(glm);
      expect(outcome).toMatchObject({ kind: 'restored', stage, serves: 'qwen' });
      expect(world.host.serves()).toBe('qwen');
      expect(world.host.fragmentPath()).toBe(namesOf(service).committedUnitPath);
      expect((await world.store.slot()).occupant).toEqual(before);
    });
  }

  it('when it never gets ready, after its boot budget', async () => {
    const world = await worldServing(qwen);
    world.host.behaviours.set('glm', { neverReady: true });
    const outcome = await world.cutover(glm);
    expect(outcome).toMatchObject({ kind: 'restored', stage: 'prove: ready', serves: 'qwen' });
    expect(outcome.outageSeconds).toBeGreaterThan(1200);
  });

  it('when it dies of its first request', async () => {
    const world = await worldServing(qwen);
    world.host.behaviours.set('glm', { dies: 'at first request' });
    expect(await world.cutover(glm)).toMatchObject({ kind: 'restored', serves: 'qwen' });
  });

  it('even if the start of the one before it fails at first', async () => {
    const world = await worldServing(qwen);
    const claim = await world.claim(glm);
    world.host.callsToLive = 75;
    await world.cutover(glm, claim).catch(() => undefined);
    world.host.failingStarts = 2;
    world.host.reboot();
    expect(await recover(world.context)).toMatchObject({ kind: 'restored', serves: 'qwen' });
    expect(world.host.serves()).toBe('qwen');
  });

  it('and is not tried again until it is forgiven', async () => {
    const world = await worldServing(qwen);
    world.host.behaviours.set('glm', { dies: 'at load' });
    await world.cutover(glm);
    expect(await world.cutover(glm)).toMatchObject({ kind: 'refused', stage: 'preflight: quarantine' });
    world.host.behaviours.delete('glm');
    await world.store.liftQuarantine(releaseIdOf(glm));
    expect(await world.cutover(glm)).toMatchObject({ kind: 'serving', serves: 'glm' });
  });

  it('unless there was nothing before: then the slot is empty again', async () => {
    const world = new World();
    world.host.behaviours.set('glm', { dies: 'at load' });
    expect(await world.cutover(glm)).toMatchObject({ kind: 'restored', serves: null });
    expect(world.host.engine).toBeUndefined();
    expect(world.host.enabled.size).toBe(0);
  });

  it('and a previous one that fails too is told as down, not as a rollback', async () => {
    const world = await worldServing(qwen);
    world.host.behaviours.set('glm', { dies: 'at load' });
    world.host.behaviours.set('qwen', { servedNames: ['other'] });
    const outcome = await world.cutover(glm);
    expect(outcome).toMatchObject({ kind: 'down', stage: 'prove: ready', serves: null });
    expect(outcome.message).toContain('prove: served names');
  });

  it('a slot that cannot be emptied is told as unusable, and nobody is quarantined for it', async () => {
    const world = await worldServing(qwen);
    world.host.stopHangs = true;
    world.host.behaviours.set('qwen', { emptyCompletions: true });
    expect(await world.cutover(glm)).toMatchObject({ kind: 'unusable', stage: 'release-slot: stop' });
    expect(await world.store.quarantined()).toEqual([]);
  });

  it('host memory that does not come back refuses the start and brings the old one back', async () => {
    const big = releaseOf('big', { memoryGateBytes: 400 * 1024 ** 3 });
    const world = await worldServing(qwen, [qwen, big]);
    const outcome = await world.cutover(big);
    expect(outcome).toMatchObject({ kind: 'restored', stage: 'release-slot: memory', serves: 'qwen' });
    expect(await world.store.quarantined()).toEqual([]);
  });
});

describe('a way back that is barred', () => {
  it('is left to systemd, and the next cutover is not refused for our own trial', async () => {
    const world = await worldServing(qwen);
    world.host.behaviours.set('glm', { emptyCompletions: true });
    world.host.whenCalled = (call) => {
      if (call.includes('/v1/chat/completions')) world.host.strayOnPort = { pid: 77, program: 'nc' };
    };
    expect(await world.cutover(glm)).toMatchObject({ kind: 'down', stage: 'prove: completion as glm' });
    expect(world.host.fragmentPath()).toBe(namesOf(service).committedUnitPath);
    world.host.whenCalled = undefined;
    world.host.strayOnPort = undefined;
    world.host.letTimePass(10);
    expect(world.host.serves()).toBe('qwen');
    world.host.behaviours.delete('glm');
    await world.store.liftQuarantine(releaseIdOf(glm));
    expect(await world.cutover(glm)).toMatchObject({ kind: 'serving', serves: 'glm' });
  });

  it('ends with the occupant of before on record, also when the failed one was recorded already', async () => {
    const world = await worldServing(qwen);
    await world.cutover(glm);
    const transaction = await world.store.transaction();
    if (transaction === undefined) throw new Error('no transaction');
    const { outcome: _closed, ...open } = transaction;
    await world.store.saveTransaction(open);
    world.host.behaviours.set('glm', { emptyCompletions: true });
    expect(await recover(world.context)).toMatchObject({ kind: 'restored', serves: 'qwen' });
    expect((await world.store.slot()).occupant?.shape).toBe('qwen');
  });
});

describe('what somebody does while preflight runs', () => {
  it('is seen before the stop', async () => {
    const world = await worldServing(qwen);
    world.host.whenCalled = (call) => {
      if (call.startsWith('systemd-run'))
        world.host.dropIns = '/etc/systemd/system/frank-archon.service.d/new.conf';
    };
    const engine = world.host.engine;
    const outcome = await world.cutover(glm);
    expect(outcome).toMatchObject({ kind: 'refused', stage: 'preflight: still no foreign occupant' });
    expect(world.host.engine).toBe(engine);
  });
});

describe('whatever dies at whatever step', () => {
  async function callsOfACutover(): Promise<number> {
    const world = await worldServing(qwen);
    await world.cutover(glm);
    return world.host.calls.length;
  }

  async function interruptedAt(step: number): Promise<World> {
    const world = await worldServing(qwen);
    const claim = await world.claim(glm);
    world.host.callsToLive = step;
    await world.cutover(glm, claim).catch((error) => {
      if (!(error instanceof Killed)) throw error;
    });
    return world;
  }

  async function expectOneServesOnRecord(world: World, step: number): Promise<void> {
    const after = world.host.calls[step];
    const { occupant } = await world.store.slot();
    world.host.letTimePass(10);
    expect(world.host.serves(), `after a death at: ${after}`).toBe(occupant?.shape);
    expect(world.host.fragmentPath(), `after a death at: ${after}`).toBe(namesOf(service).committedUnitPath);
    const transaction = await world.store.transaction();
    expect(transaction?.outcome, `after a death at: ${after}`).toBeDefined();
  }

  it('old or new serves after the process was killed and started again', async () => {
    const steps = await callsOfACutover();
    expect(steps).toBeGreaterThan(50);
    for (let step = 0; step < steps; step += 1) {
      const world = await interruptedAt(step);
      world.host.revive();
      await recover(world.context);
      await expectOneServesOnRecord(world, step);
    }
  });

  it('an engine that was not stopped yet is not restarted', async () => {
    const world = await worldServing(qwen);
    const claim = await world.claim(glm);
    await world.store.slot();
    world.host.whenCalled = (call) => {
      if (call.startsWith('systemctl stop')) world.host.callsToLive = 0;
    };
    await world.cutover(glm, claim).catch(() => undefined);
    world.host.whenCalled = undefined;
    world.host.revive();
    const engine = world.host.engine;
    expect(await recover(world.context)).toMatchObject({ kind: 'restored', serves: 'qwen' });
    expect(world.host.engine).toBe(engine);
  });

  it('old or new serves after the host lost power', async () => {
    const steps = await callsOfACutover();
    for (let step = 0; step < steps; step += 1) {
      const world = await interruptedAt(step);
      world.host.reboot();
      await recover(world.context);
      await expectOneServesOnRecord(world, step);
    }
  });

  it('a recovery that is killed itself is ended by the next one', async () => {
    const steps = await callsOfACutover();
    for (let step = 0; step < steps; step += 7) {
      for (let second = 1; second < 60; second += 11) {
        const world = await interruptedAt(step);
        world.host.callsToLive = second;
        await recover(world.context).catch((error) => {
          if (!(error instanceof Killed)) throw error;
        });
        world.host.revive();
        await recover(world.context);
        await expectOneServesOnRecord(world, step);
      }
    }
  });
});

describe('a disk that gets full', () => {
  it('after whatever write: old or new serves, from its committed place', async () => {
    for (let writes = 0; writes < 25; writes += 1) {
      for (const fault of [{}, { emptyCompletions: true }]) {
        const world = await worldServing(qwen);
        world.host.behaviours.set('glm', fault);
        world.host.writesUntilDiskFull = writes;
        await world.cutover(glm).catch(() => undefined);
        world.host.letTimePass(10);
        expect(['qwen', 'glm'], `full after ${writes} writes`).toContain(world.host.serves());
        expect(world.host.fragmentPath()).toBe(namesOf(service).committedUnitPath);
        world.host.writesUntilDiskFull = undefined;
        await recover(world.context);
        world.host.letTimePass(10);
        expect(world.host.serves(), `full after ${writes} writes`).toBe(
          (await world.store.slot()).occupant?.shape,
        );
      }
    }
  });
});

describe('vacating', () => {
  async function ownClaim(world: World): Promise<Claim> {
    const { occupant } = await world.store.slot();
    if (occupant === null) throw new Error('nobody holds the slot');
    return occupant.claim;
  }

  it('is refused to a claim that has lost the slot meanwhile', async () => {
    const world = await worldServing(qwen);
    const lost = await ownClaim(world);
    await world.cutover(glm);
    expect(await vacate(world.context, lost)).toMatchObject({
      kind: 'refused',
      stage: 'claim',
      serves: 'glm',
    });
    expect(world.host.serves()).toBe('glm');
  });

  it('stops the engine and leaves nothing that boots', async () => {
    const world = await worldServing(qwen);
    expect(await vacate(world.context, await ownClaim(world))).toMatchObject({
      kind: 'vacated',
      serves: null,
    });
    world.host.reboot();
    world.host.letTimePass(10);
    expect(world.host.serves()).toBeUndefined();
    expect((await world.store.slot()).occupant).toBeNull();
  });

  it('is ended after a reboot in the middle', async () => {
    const world = await worldServing(qwen);
    world.host.callsToLive = 6;
    await vacate(world.context, await ownClaim(world)).catch(() => undefined);
    world.host.reboot();
    await recover(world.context);
    world.host.letTimePass(10);
    expect(world.host.serves()).toBeUndefined();
  });
});
