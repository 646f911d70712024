import { namesOf } from '../shape/names.ts';
import type { Release } from '../shape/release.ts';
import { CheckFailure, nameOf, perform } from './checks.ts';
import { faultsOf, type Standing } from './conjunction.ts';
import { gpuHolders, gpuMemory, memAvailableBytes } from './devices.ts';
import { engineLogPath, engineUnit, lastLogLines, stateOf } from './engine.ts';
import type { Outside } from './outside.ts';
import { provePatchesRun } from './patches-in-effect.ts';
import { inspectContainer } from './podman.ts';
import { cgroupOf, listenersOn, processesIn } from './processes.ts';
import type { Progress } from './progress.ts';
import { isEnabled, systemctl } from './systemd.ts';
import { waitFor } from './waiting.ts';

/** What every stage of a transaction works with. */
export interface Slot {
  readonly outside: Outside;
  readonly service: string;
  readonly progress: Progress;
}

/** A stage did not reach its end; `stage` names it for people and for the next preview. */
export class StageFailure extends Error {
  readonly stage: string;
  readonly engineLog: string | undefined;
  /** The host itself stands in the way, whatever release is tried. */
  readonly hostUnusable: boolean;

  constructor(stage: string, message: string, more: { engineLog?: string; hostUnusable?: boolean } = {}) {
    super(message);
    this.stage = stage;
    this.engineLog = more.engineLog;
    this.hostUnusable = more.hostUnusable ?? false;
  }
}

/** Waits until no request runs, at most `drainSeconds`; an engine that does not tell is not waited for. */
export async function drain({ outside, progress }: Slot, occupant: Release): Promise<void> {
  const limitSeconds = occupant.deadlines.drainSeconds;
  if (limitSeconds === 0) return;
  await progress.say(`waiting up to ${limitSeconds} s for running requests to end`);
  const left = await waitFor(
    outside,
    progress,
    { what: 'drain', limitSeconds, intervalSeconds: 0.5 },
    async () => {
      const metrics = await outside
        .request('GET', `http://127.0.0.1:${occupant.port}/metrics`, undefined, 2)
        .catch(() => undefined);
      const running = metrics?.body.match(
        /^(?:vllm:num_requests_running|llamacpp:requests_processing)\S* (\S+)/m,
      )?.[1];
      return running === undefined || Number(running) === 0
        ? { done: true }
        : { done: false, obstacle: `${Number(running)} requests run` };
    },
  );
  if (left !== undefined) await progress.say(`going on after the limit although ${left}`);
}

/** Stops whatever the unit runs, by systemd's own means. */
export async function stop({ outside, service, progress }: Slot, limitSeconds: number): Promise<void> {
  const unit = await engineUnit(outside, service);
  if (unit.ActiveState === 'inactive') return;
  await progress.say('stopping the engine');
  await systemctl(outside, ['stop', namesOf(service).unit], limitSeconds).catch((error: Error) => {
    throw new StageFailure('release-slot: stop', error.message, { hostUnusable: true });
  });
}

/**
 * The slot is empty when unit, cgroup, container, port and video memory say so, and the host's memory
 * is back. Each is waited for up to the limit; what then still stands in the way is named with its holder.
 */
export async function verifyEmpty(
  { outside, service, progress }: Slot,
  container: string,
  wanted: Release,
  limitSeconds: number,
): Promise<void> {
  const names = namesOf(service);
  const obstacles: Readonly<Record<string, () => Promise<string | undefined>>> = {
    unit: async () => {
      const unit = await engineUnit(outside, service);
      if (unit.ActiveState !== 'inactive' && unit.ActiveState !== 'failed') {
        return `${names.unit} is ${unit.ActiveState} (${unit.SubState})`;
      }
      const left = await processesIn(outside, unit.ControlGroup || `/system.slice/${names.unit}`);
      return left.length === 0
        ? undefined
        : `processes ${left.join(', ')} are left in the cgroup of ${names.unit}`;
    },
    container: async () => {
      const found = await inspectContainer(outside, container);
      return found && `container ${container} is ${found.State.Status} (pid ${found.State.Pid})`;
    },
    port: async () => {
      const [holder] = await listenersOn(outside, wanted.port);
      if (holder === undefined) return undefined;
      const cgroup = (await cgroupOf(outside, holder.pid)) ?? 'an unknown cgroup';
      return `port ${wanted.port} is held by ${holder.program} (pid ${holder.pid}, ${cgroup})`;
    },
    memory: async () => {
      const available = await memAvailableBytes(outside);
      return available >= wanted.memoryGateBytes
        ? undefined
        : `MemAvailable is ${gib(available)}, the gate is ${gib(wanted.memoryGateBytes)}`;
    },
    gpu: async () => {
      const [held] = (await gpuMemory(outside, wanted.gpus)).filter(
        (gpu) => gpu.vramTotalBytes - gpu.vramUsedBytes < wanted.gpuMemoryUtilization * gpu.vramTotalBytes,
      );
      if (held === undefined) return undefined;
      const holders = await gpuHolders(outside);
      const by = holders.length === 0 ? 'no process' : holders.join(', ');
      return `GPU ${held.pci} has ${gib(held.vramUsedBytes)} of ${gib(held.vramTotalBytes)} in use, held by ${by}`;
    },
  };
  await Promise.all(
    Object.entries(obstacles).map(async ([what, ask]) => {
      const left = await waitFor(
        outside,
        progress,
        { what: `waiting for ${what}`, limitSeconds, intervalSeconds: 0.25 },
        async () => {
          const obstacle = await ask();
          return obstacle === undefined ? { done: true } : { done: false, obstacle };
        },
      );
      if (left === undefined) return;
      const hostUnusable = what === 'unit' || what === 'container' || left.endsWith('held by no process');
      throw new StageFailure(`release-slot: ${what}`, left, { hostUnusable });
    }),
  );
}

/**
 * Puts the release on trial: its unit in /run wins over the committed one and is gone after a reboot. Done while
 * the old engine still serves, as systemd takes 0.1 to 0.4 s to read its files anew: the stop is the same in
 * every release's unit.
 */
export async function loadTrial({ outside, service }: Slot, release: Release): Promise<void> {
  await outside.writeDurably(namesOf(service).trialUnitPath, release.unit);
  await systemctl(outside, ['daemon-reload']);
}

/** Starts the release on trial in the empty slot, without waiting for the engine to be ready. */
export async function take({ outside, service, progress }: Slot, release: Release): Promise<void> {
  await progress.say(`starting ${release.shape} on trial`);
  await systemctl(outside, ['start', '--no-block', namesOf(service).unit]);
}

/** Starts the unit as systemd has it loaded, without waiting for the engine to be ready. */
export async function start({ outside, service }: Slot): Promise<void> {
  const { unit } = namesOf(service);
  await systemctl(outside, ['reset-failed', unit]).catch(() => undefined);
  await systemctl(outside, ['start', '--no-block', unit]);
}

/**
 * Crashes while loading that are borne. One on trial has none. For one that has proved itself before there is
 * nothing better to come back to, and its first start after a power cut can fail on what the cut left behind.
 */
const crashesBorne: Readonly<Record<Standing, number>> = { trial: 0, committed: 3 };

/** Follows the engine's start until systemd calls it active; a crash is seen within a second. */
export async function awaitReady(
  { outside, service, progress }: Slot,
  release: Release,
  standing: Standing,
  expectedSeconds: number | undefined,
): Promise<void> {
  const limitSeconds = release.deadlines.bootSeconds;
  const about = expectedSeconds === undefined ? '' : `, about ${Math.round(expectedSeconds)} s expected`;
  await progress.say(`waiting until ${release.shape} is ready (limit ${limitSeconds} s${about})`);
  let restartsBefore: number | undefined;
  const left = await waitFor(
    outside,
    progress,
    { what: 'loading', limitSeconds, intervalSeconds: 0.25, expectedSeconds },
    async () => {
      const unit = await engineUnit(outside, service);
      const state = stateOf(unit);
      if (state === 'serving') return { done: true };
      const isRestarting = unit.SubState.startsWith('auto-restart');
      restartsBefore ??= Number(unit.NRestarts);
      const crashes = Number(unit.NRestarts) - restartsBefore + (isRestarting ? 1 : 0);
      if ((state === 'loading' || isRestarting) && crashes <= crashesBorne[standing]) {
        return {
          done: false,
          obstacle: crashes === 0 ? 'the engine loads' : `the engine ended ${crashes} times`,
        };
      }
      throw await withLog(
        outside,
        release,
        unit.InvocationID,
        'ready',
        `the engine ended while it loaded (${unit.ActiveState}, ${unit.SubState}, ${unit.Result})`,
      );
    },
  );
  if (left === undefined) return;
  const unit = await engineUnit(outside, service);
  throw await withLog(outside, release, unit.InvocationID, 'ready', `not ready within ${limitSeconds} s`);
}

/**
 * The conjunction, the checks, and the conjunction again: an engine can die of its first requests. One on trial
 * has to stand for a while after them; it answers its clients meanwhile.
 */
export async function prove(slot: Slot, release: Release, standing: Standing): Promise<void> {
  await holds(slot, release, standing);
  await provePatches(slot, release);
  for (const check of release.checks) {
    try {
      await perform(slot.outside, release, check);
    } catch (error) {
      if (!(error instanceof CheckFailure)) throw error;
      const { InvocationID } = await engineUnit(slot.outside, slot.service);
      throw await withLog(slot.outside, release, InvocationID, error.check, error.message);
    }
    await slot.progress.say(`${nameOf(check)}: as expected`);
  }
  if (standing === 'trial') await slot.outside.sleep(release.deadlines.settleSeconds);
  await holds(slot, release, standing);
}

/** A patch that is mounted and not used is a failure, however well the engine serves. */
async function provePatches({ outside, service, progress }: Slot, release: Release): Promise<void> {
  if (release.patches.length === 0) return;
  try {
    const container = await inspectContainer(outside, release.container);
    if (container === undefined) throw new Error(`there is no container ${release.container}`);
    await progress.say(await provePatchesRun(outside, release, container));
  } catch (error) {
    const { InvocationID } = await engineUnit(outside, service);
    throw await withLog(outside, release, InvocationID, 'patches in effect', (error as Error).message);
  }
}

async function holds(
  { outside, service, progress }: Slot,
  release: Release,
  standing: Standing,
): Promise<void> {
  const faults = await faultsOf(outside, release, standing);
  const [first] = faults;
  if (first === undefined) {
    await progress.say('the conjunction holds');
    return;
  }
  const { InvocationID } = await engineUnit(outside, service);
  const all = faults.map(({ part, message }) => `${part}: ${message}`).join('; ');
  throw await withLog(outside, release, InvocationID, first.part, `the conjunction does not hold: ${all}`);
}

/** Makes the proved release the one that boots. Can be repeated from any point at which it was cut off. */
export async function commitUnit({ outside, service, progress }: Slot, release: Release): Promise<void> {
  const names = namesOf(service);
  await progress.say(`committing ${release.shape}`);
  // What is there already is not written again: the way back must not need room on a full disk.
  for (const [path, text] of [
    [names.targetPath, release.target],
    [names.committedUnitPath, release.unit],
  ] as const) {
    if ((await outside.readText(path)) !== text) await outside.writeDurably(path, text);
  }
  await outside.removeDurably(names.trialUnitPath);
  await systemctl(outside, ['daemon-reload']);
  for (const unit of [names.target, names.unit]) {
    if ((await isEnabled(outside, unit)) !== 'enabled') await systemctl(outside, ['enable', unit]);
  }
}

/** Takes the trial's unit away; the committed one, if there is one, is what systemd reads again. */
export async function removeTrial({ outside, service }: Slot): Promise<void> {
  await outside.removeDurably(namesOf(service).trialUnitPath);
  await systemctl(outside, ['daemon-reload']);
}

/** Leaves nothing of the service that systemd could start. */
export async function removeUnits(slot: Slot): Promise<void> {
  const names = namesOf(slot.service);
  for (const unit of [names.unit, names.target]) {
    await systemctl(slot.outside, ['disable', unit]).catch(() => undefined);
  }
  await slot.outside.removeDurably(names.committedUnitPath);
  await slot.outside.removeDurably(names.targetPath);
  await removeTrial(slot);
}

async function withLog(
  outside: Outside,
  release: Release,
  invocation: string,
  stage: string,
  message: string,
): Promise<StageFailure> {
  const engineLog = engineLogPath(release.service, release.container, invocation);
  const lines = await lastLogLines(outside, engineLog);
  return new StageFailure(`prove: ${stage}`, `${message}\nlast lines of ${engineLog}:\n${lines.join('\n')}`, {
    engineLog,
  });
}

function gib(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(2)} GiB`;
}
