import { hostname } from 'node:os';
import type { Finding, Inspection } from '../shape/inspection.ts';
import { namesOf } from '../shape/names.ts';
import { type Release, releaseIdOf } from '../shape/release.ts';
import { faultsOf } from './conjunction.ts';
import { gpuMemory, memAvailableBytes } from './devices.ts';
import { engineUnit, stateOf } from './engine.ts';
import { foreignFindings } from './foreign.ts';
import type { Outside } from './outside.ts';
import { imageState } from './podman.ts';
import type { Store } from './store.ts';
import { showUnit } from './systemd.ts';
import { outagesOf } from './transaction.ts';

/** The quick look: files, systemd and podman queries, sysfs. Starts no container and writes nothing. */
export async function inspect(
  outside: Outside,
  store: Store,
  service: string,
  agent: string,
  wanted: Release | undefined,
): Promise<Inspection> {
  const names = namesOf(service);
  const [slot, transaction, history, cutoverUnit, memory] = await Promise.all([
    store.slot(),
    store.transaction(),
    store.history(),
    showUnit(outside, names.cutoverUnit, ['ActiveState']),
    memAvailableBytes(outside),
  ]);
  const wantedId = wanted && releaseIdOf(wanted);
  const running = cutoverUnit.ActiveState !== 'inactive' && cutoverUnit.ActiveState !== 'failed';
  const [occupant, installedUnit, findings, quarantine, preflight, gpus] = await Promise.all([
    occupantOf(outside, store, service),
    installedUnitOf(outside, service),
    findingsOf(outside, store, service, wanted),
    wantedId === undefined ? undefined : store.quarantine(wantedId),
    wantedId === undefined ? [] : store.preflight(wantedId),
    gpuMemory(outside, wanted?.gpus ?? []),
  ]);
  return {
    version: 1,
    agent,
    hostname: hostname(),
    service,
    at: outside.now().toISOString(),
    epoch: slot.epoch,
    changed: slot.changed,
    occupant,
    transaction: transaction === undefined ? null : { ...transaction, running },
    installedUnit,
    outages: wanted === undefined ? [] : outagesOf(history, wanted.shape),
    quarantine: quarantine ?? null,
    findings,
    preflight,
    memAvailableBytes: memory,
    gpus,
  };
}

async function occupantOf(outside: Outside, store: Store, service: string): Promise<Inspection['occupant']> {
  const { occupant } = await store.slot();
  if (occupant === null) return null;
  const release = await store.release(occupant.releaseId);
  const unit = await engineUnit(outside, service);
  const faults = (await faultsOf(outside, release, 'committed')).map(
    ({ part, message }) => `${part}: ${message}`,
  );
  const systemdState = stateOf(unit);
  return {
    ...occupant,
    state: systemdState === 'serving' && faults.length > 0 ? 'unhealthy' : systemdState,
    faults: systemdState === 'loading' ? [] : faults,
    servedNames: release.servedNames,
    port: release.port,
    invocation: unit.InvocationID,
  };
}

async function installedUnitOf(outside: Outside, service: string): Promise<Inspection['installedUnit']> {
  const { FragmentPath: path } = await engineUnit(outside, service);
  const text = path === '' ? undefined : await outside.readText(path);
  return text === undefined ? null : { path, text };
}

async function findingsOf(
  outside: Outside,
  store: Store,
  service: string,
  wanted: Release | undefined,
): Promise<Finding[]> {
  const findings = await foreignFindings(outside, store, service, wanted?.port);
  if (wanted === undefined) return findings;
  const image = await imageState(outside, wanted.image);
  if (image !== 'present') {
    findings.push({
      severity: 'note',
      subject: 'image',
      message: `${wanted.image} is ${image} on the host; it is pulled before the old engine stops`,
    });
  }
  if ((await outside.kindOf(wanted.payload.folder)) !== 'folder') {
    findings.push({
      severity: 'refuse',
      subject: 'payload',
      message: `${wanted.payload.folder} is not a folder on the host`,
    });
  }
  for (const path of [...wanted.deviceFiles, ...wanted.gpus.map((pci) => `/sys/bus/pci/devices/${pci}`)]) {
    if ((await outside.kindOf(path)) === 'absent') {
      findings.push({ severity: 'refuse', subject: 'device', message: `${path} is not on the host` });
    }
  }
  return findings;
}
