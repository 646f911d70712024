import { type Finding, isBeforeTheStop, type Transaction } from '../shape/inspection.ts';
import { committedUnitFolder, namesOf, trialUnitFolder } from '../shape/names.ts';
import { type EngineUnit, engineUnit } from './engine.ts';
import type { Outside } from './outside.ts';
import { containersBeginningWith } from './podman.ts';
import { cgroupOf, listenersOn } from './processes.ts';
import type { Store } from './store.ts';

/** Where an administrator's own units and changes lie: it wins over all others. */
const etcUnitFolder = '/etc/systemd/system';

/**
 * What holds the slot's name or port and was not put there by a transaction of ours. It may be a production
 * engine that somebody set up by hand: nothing of it is touched.
 */
export async function foreignFindings(
  outside: Outside,
  store: Store,
  service: string,
  port: number | undefined,
  unitAsked: Promise<EngineUnit> = engineUnit(outside, service),
): Promise<Finding[]> {
  const names = namesOf(service);
  const refuse = (subject: string, message: string): Finding => ({ severity: 'refuse', subject, message });
  const [{ occupant }, transaction, unit, containers, listeners] = await Promise.all([
    store.slot(),
    store.transaction(),
    unitAsked,
    containersBeginningWith(outside, `${service}-`),
    port === undefined ? [] : listenersOn(outside, port),
  ]);
  const onTrial =
    transaction !== undefined && transaction.outcome === undefined && !isBeforeTheStop(transaction.phase);
  const findings: Finding[] = [];

  const maskPaths = [names.trialUnitPath, `${etcUnitFolder}/${names.unit}`];
  for (const path of maskPaths) {
    if ((await outside.readLink(path)) === '/dev/null') {
      findings.push(
        refuse(
          'mask',
          `${path} masks the unit and is not ours; look who set it, then: systemctl unmask ${path.startsWith('/run') ? '--runtime ' : ''}${names.unit}`,
        ),
      );
    }
  }
  const own = [names.committedUnitPath, ...(onTrial ? [names.trialUnitPath] : [])];
  const isLeftover =
    unit.FragmentPath === names.trialUnitPath && (await isOurTrial(outside, store, transaction));
  if (unit.LoadState === 'loaded' && !own.includes(unit.FragmentPath) && !isLeftover) {
    findings.push(
      refuse('unit', `${unit.FragmentPath} is a unit of this name that was not installed by a cutover`),
    );
  }
  const committed = await outside.readText(names.committedUnitPath);
  if (committed !== undefined && !onTrial) {
    const expected = occupant === null ? undefined : (await store.release(occupant.releaseId)).unit;
    if (committed !== expected) {
      findings.push(
        refuse(
          'unit',
          `${names.committedUnitPath} is not what the last cutover installed (${occupant?.shape ?? 'the slot is empty'}); put it back or move it away`,
        ),
      );
    }
  }
  const dropIns = await dropInsOf(outside, names.unit, unit);
  if (dropIns !== '') {
    findings.push(
      refuse('drop-in', `${dropIns} changes the unit; move it away: what is served is what the shape says`),
    );
  }
  for (const { name, state, identity } of containers) {
    if (identity === undefined) {
      findings.push(refuse('container', `container ${name} (${state}) was not started by a shape's unit`));
    }
  }
  for (const { pid, program } of listeners) {
    const cgroup = await cgroupOf(outside, pid);
    const inUnit = unit.ControlGroup !== '' && cgroup?.startsWith(unit.ControlGroup);
    if (!inUnit) {
      findings.push(
        refuse(
          'port',
          `port ${port} is held by ${program} (pid ${pid}, ${cgroup ?? 'no cgroup'}), which is not of ${names.unit}`,
        ),
      );
    }
  }
  return findings;
}

/** Those that systemd has loaded and those that wait for a unit which is not there yet. */
async function dropInsOf(outside: Outside, unitName: string, unit: EngineUnit): Promise<string> {
  if (unit.LoadState === 'loaded') return unit.DropInPaths;
  const folders = [etcUnitFolder, trialUnitFolder, committedUnitFolder].map(
    (folder) => `${folder}/${unitName}.d`,
  );
  const files = await Promise.all(
    folders.map(async (folder) => (await outside.list(folder)).map((name) => `${folder}/${name}`)),
  );
  return files
    .flat()
    .filter((path) => path.endsWith('.conf'))
    .join(' ');
}

/** A trial of ours whose way back failed: it is taken away by the next transaction. */
async function isOurTrial(
  outside: Outside,
  store: Store,
  transaction: Transaction | undefined,
): Promise<boolean> {
  if (transaction === undefined) return false;
  const release = await store.release(transaction.releaseId).catch(() => undefined);
  return (
    release !== undefined && (await outside.readText(namesOf(release.service).trialUnitPath)) === release.unit
  );
}
