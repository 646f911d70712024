import type { engineStates } from '../shape/inspection.ts';
import { namesOf } from '../shape/names.ts';
import type { Outside } from './outside.ts';
import { showUnit } from './systemd.ts';

const unitProperties = [
  'LoadState',
  'ActiveState',
  'SubState',
  'Result',
  'FragmentPath',
  'DropInPaths',
  'NeedDaemonReload',
  'ControlGroup',
  'MainPID',
  'NRestarts',
  'InvocationID',
  'Job',
] as const;
export type EngineUnit = Record<(typeof unitProperties)[number], string>;

export function engineUnit(outside: Outside, service: string): Promise<EngineUnit> {
  return showUnit(outside, namesOf(service).unit, unitProperties);
}

export type EngineState = (typeof engineStates)[number];

/** What systemd alone makes of the engine; `serving` still has to be proved by the conjunction. */
export function stateOf(unit: EngineUnit): EngineState {
  if (unit.SubState === 'auto-restart' || unit.SubState === 'auto-restart-queued') return 'failed';
  switch (unit.ActiveState) {
    case 'active':
      return 'serving';
    case 'activating':
    case 'reloading':
      return 'loading';
    case 'inactive':
      return unit.Job === '' ? 'stopped' : 'loading';
    case 'deactivating':
      return unit.Job === '' ? 'unhealthy' : 'loading';
    case 'failed':
      return 'failed';
    default:
      return 'unhealthy';
  }
}

/** Path of the log that the engine of this invocation writes; the unit names it the same way. */
export function engineLogPath(service: string, container: string, invocation: string): string {
  const shortName = container.slice(service.length + 1);
  return `${namesOf(service).logFolder}/${shortName}-${invocation}.log`;
}

/** Last lines of an engine's log, without the prefix that the k8s-file format puts before each. */
export async function lastLogLines(outside: Outside, path: string, count = 20): Promise<string[]> {
  const text = (await outside.readText(path)) ?? '';
  return text
    .trimEnd()
    .split('\n')
    .slice(-count)
    .map((line) => line.replace(/^\S+ std(?:out|err) [FP] /, ''));
}
