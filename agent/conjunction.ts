import { identityLabel, namesOf } from '../shape/names.ts';
import type { Release } from '../shape/release.ts';
import { type EngineUnit, engineUnit } from './engine.ts';
import type { Outside } from './outside.ts';
import { mountedPatchFault } from './patches-in-effect.ts';
import { type Container, inspectContainer } from './podman.ts';
import { cgroupOf, environmentOf, listenersOn, memlockOf } from './processes.ts';
import { isEnabled } from './systemd.ts';

/** A part of the conjunction that does not hold. */
export interface Fault {
  readonly part: string;
  readonly message: string;
}

export type Standing = 'trial' | 'committed';

interface Evidence {
  readonly outside: Outside;
  readonly release: Release;
  readonly standing: Standing;
  readonly unit: EngineUnit;
  readonly container: Container | undefined;
}

/** A part looks at the host and answers with what is wrong, or with nothing. */
type Part = (evidence: Evidence) => Promise<string | undefined> | string | undefined;

/**
 * "Healthy" is all of these at once. An engine that is being killed still answers its health path with 200,
 * a unit can be active on limits that its process never got, and a stray process can answer on the port.
 */
const parts: Readonly<Record<string, Part>> = {
  'unit is active': ({ unit }) =>
    unit.ActiveState === 'active' ? undefined : `systemd says ${unit.ActiveState} (${unit.SubState})`,

  'unit is not masked': ({ unit }) =>
    unit.LoadState === 'loaded' ? undefined : `systemd says ${unit.LoadState}`,

  'unit is the one of this release': async ({ outside, release, standing, unit }) => {
    const names = namesOf(release.service);
    const wanted = standing === 'trial' ? names.trialUnitPath : names.committedUnitPath;
    if (unit.FragmentPath !== wanted)
      return `systemd reads ${unit.FragmentPath || 'no file'} instead of ${wanted}`;
    if (unit.DropInPaths !== '') return `drop-ins change it: ${unit.DropInPaths}`;
    if (unit.NeedDaemonReload !== 'no') return 'its file was changed and not loaded';
    return (await outside.readText(wanted)) === release.unit
      ? undefined
      : `${wanted} differs from the release`;
  },

  'unit is enabled': async ({ outside, release, standing }) => {
    if (standing === 'trial') return undefined;
    const answer = await isEnabled(outside, namesOf(release.service).unit);
    return answer === 'enabled' ? undefined : `systemd says ${answer || 'nothing'}`;
  },

  'engine did not restart': ({ standing, unit }) =>
    standing === 'committed' || unit.NRestarts === '0'
      ? undefined
      : `systemd restarted it ${unit.NRestarts} times`,

  'container runs and belongs to the unit': async ({ outside, release, unit, container }) => {
    if (container === undefined) return `there is no container ${release.container}`;
    if (container.State.Status !== 'running') return `podman says ${container.State.Status}`;
    const cgroup = await cgroupOf(outside, container.State.Pid);
    return isWithin(cgroup, unit.ControlGroup)
      ? undefined
      : `its process ${container.State.Pid} is in ${cgroup ?? 'no cgroup'}, not in ${unit.ControlGroup}`;
  },

  'container is the one of this release': ({ release, container }) => {
    const identity = container?.Config.Labels?.[identityLabel];
    return identity === release.engineIdentity
      ? undefined
      : `engine identity is ${identity ?? 'not marked'}, wanted ${release.engineIdentity}`;
  },

  'arguments are the configured ones': ({ release, container }) => {
    const actual = container?.Config.Cmd ?? [];
    if (isSame(actual, release.arguments)) return undefined;
    const at = release.arguments.findIndex((argument, index) => argument !== actual[index]);
    const index = at === -1 ? release.arguments.length : at;
    return `argument ${index + 1} is ${quote(actual[index])}, wanted ${quote(release.arguments[index])}`;
  },

  'environment is the configured one': async ({ outside, release, container }) => {
    const actual = container && (await environmentOf(outside, container.State.Pid));
    if (actual === undefined) return 'the environment of its process cannot be read';
    const wrong = Object.entries(release.environment).find(([name, value]) => actual.get(name) !== value);
    return wrong && `${wrong[0]} is ${quote(actual.get(wrong[0]))}, wanted ${quote(wrong[1])}`;
  },

  'locked memory is what the shape asks for': async ({ outside, release, container }) => {
    const limit = container && (await memlockOf(outside, container.State.Pid));
    if (limit === undefined) return 'the limits of its process cannot be read';
    return limit.soft === release.memlock && limit.hard === release.memlock
      ? undefined
      : `its process may lock ${limit.soft} (hard ${limit.hard}) bytes, wanted ${release.memlock}`;
  },

  'patched files are mounted as they were made': ({ outside, release, container }) =>
    container && mountedPatchFault(outside, release, container.State.Pid),

  'the port is answered by the unit': async ({ outside, release, unit }) => {
    const listeners = await listenersOn(outside, release.port);
    if (listeners.length === 0) return `nothing listens on port ${release.port}`;
    for (const { pid, program } of listeners) {
      if (!isWithin(await cgroupOf(outside, pid), unit.ControlGroup)) {
        return `port ${release.port} is held by ${program} (pid ${pid}), which is not of the unit`;
      }
    }
    return undefined;
  },

  'health path answers 200': async ({ outside, release }) => {
    try {
      const { status } = await outside.request('GET', engineUrl(release, release.healthPath), undefined, 2);
      return status === 200 ? undefined : `status ${status}`;
    } catch (error) {
      return (error as Error).message;
    }
  },
};

/**
 * All parts that do not hold, in the order of the table above; none means healthy. Whoever has asked for the
 * unit already hands its answer over.
 */
export async function faultsOf(
  outside: Outside,
  release: Release,
  standing: Standing,
  unitAsked: Promise<EngineUnit> = engineUnit(outside, release.service),
): Promise<Fault[]> {
  const [unit, container] = await Promise.all([unitAsked, inspectContainer(outside, release.container)]);
  const evidence: Evidence = { outside, release, standing, unit, container };
  const judged = await Promise.all(
    Object.entries(parts).map(async ([part, judge]) => ({ part, message: await judge(evidence) })),
  );
  return judged.flatMap(({ part, message }) => (message === undefined ? [] : [{ part, message }]));
}

export function engineUrl(release: Release, path: string): string {
  return `http://127.0.0.1:${release.port}${path}`;
}

function isWithin(cgroup: string | undefined, parent: string): boolean {
  return parent !== '' && cgroup !== undefined && (cgroup === parent || cgroup.startsWith(`${parent}/`));
}

function isSame(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((item, index) => item === right[index]);
}

function quote(text: string | undefined): string {
  return text === undefined ? 'absent' : JSON.stringify(text);
}
