import { hostname } from 'node:os';
import type { Finding, Inspection } from '../shape/inspection.ts';
import { namesOf } from '../shape/names.ts';
import { sealsOf, treesOf } from '../shape/payload-seals.ts';
import { type Release, releaseIdOf } from '../shape/release.ts';
import { faultsOf } from './conjunction.ts';
import { gpuMemory, type HostMemory, hostMemory } from './devices.ts';
import { type EngineUnit, engineUnit, stateOf } from './engine.ts';
import { foreignFindings } from './foreign.ts';
import { payloadTree } from './hashing/payload-tree.ts';
import { sealFindings } from './hashing/sealed-payload.ts';
import type { Outside } from './outside.ts';
import { patchFindings } from './patches.ts';
import { quickLook } from './payload/extent.ts';
import { type Inventory, inventoryOf } from './payload/inventory.ts';
import { imageState } from './podman.ts';
import { payloadChecks } from './preflight.ts';
import type { PreflightResults, Store } from './store.ts';
import { isUnderWay, showUnit } from './systemd.ts';
import { outagesOf } from './transaction.ts';

/**
 * The quick look: files, systemd and podman queries, sysfs. Starts no container and leaves nothing written: to look at
 * patched files it has the image mounted, with a note of that in /run, and takes both away.
 */
export async function inspect(
  outside: Outside,
  store: Store,
  service: string,
  agent: string,
  wanted: Release | undefined,
): Promise<Inspection> {
  const names = namesOf(service);
  const wantedId = wanted && releaseIdOf(wanted);
  // Asked once: each question to systemd or podman costs tens of milliseconds and a moment of its own.
  const unit = engineUnit(outside, service);
  const [
    slot,
    transaction,
    history,
    cutoverUnit,
    memory,
    occupant,
    installedUnit,
    findings,
    quarantine,
    preflight,
    gpus,
    payload,
    patches,
    seals,
  ] = await Promise.all([
    store.slot(),
    store.transaction(),
    store.history(),
    showUnit(outside, names.cutoverUnit, ['ActiveState']),
    memoryOf(outside, unit, wanted?.gpus ?? []),
    occupantOf(outside, store, unit),
    installedUnitOf(outside, unit),
    findingsOf(outside, store, service, unit, wanted),
    wantedId === undefined ? undefined : store.quarantine(wantedId),
    wanted === undefined ? [] : preflightOf(outside, store, wanted),
    gpuMemory(outside, wanted?.gpus ?? []),
    wanted && inventoryOf(outside, wanted, quickLook),
    patchFindings(outside, wanted),
    wanted === undefined ? [] : sealFindings(outside, service, wanted),
  ]);
  const { availableBytes, ...furtherMemory } = memory;
  const running = isUnderWay(cutoverUnit.ActiveState);
  return {
    version: 1,
    agent,
    hostname: hostname(),
    service,
    at: outside.now().toISOString(),
    epoch: slot.epoch,
    changed: slot.changed,
    occupant,
    // Between two transactions the unit may run while the record is still the last one's.
    transaction:
      transaction === undefined
        ? null
        : { ...transaction, running: running && transaction.outcome === undefined },
    installedUnit,
    outages: wanted === undefined ? [] : outagesOf(history, wanted.shape),
    quarantine: quarantine ?? null,
    findings: [...findings, ...patches, ...(payload?.findings ?? []), ...contentsOf(payload), ...seals],
    preflight,
    memAvailableBytes: availableBytes,
    gpus,
    memory: furtherMemory,
    payload: payload?.facts ?? null,
  };
}

/** Results of deep checks without those of a payload that was changed since. */
async function preflightOf(outside: Outside, store: Store, wanted: Release): Promise<PreflightResults> {
  const results = await store.preflight(releaseIdOf(wanted));
  const ofPayload = results.filter(({ check }) => payloadChecks.includes(check));
  if (ofPayload.length === 0) return results;
  const changed = await Promise.all(treesOf(wanted).map(({ root }) => changedAt(outside, root)));
  const latest = Math.max(...changed);
  return results.filter((result) => !ofPayload.includes(result) || Date.parse(result.at) >= latest);
}

/** When a file of a tree was last changed, in milliseconds since 1970; what is wrong with the tree is a finding's to say. */
async function changedAt(outside: Outside, root: string): Promise<number> {
  const files = await payloadTree(outside, root).catch(() => []);
  const folder = await outside.statusOf(root).catch(() => undefined);
  const times = [folder, ...files.map(({ status }) => status)].map((status) => Number(status?.changed ?? 0));
  return Math.max(...times) / 1e6;
}

/** What lies there, for a reviewer to compare with what he knows. */
function contentsOf(inventory: Inventory | undefined): readonly Finding[] {
  return (inventory?.contents ?? []).map((message) => ({ severity: 'note', subject: 'payload', message }));
}

async function memoryOf(
  outside: Outside,
  unitAsked: Promise<EngineUnit>,
  gpus: readonly string[],
): Promise<HostMemory> {
  const { ControlGroup } = await unitAsked;
  return hostMemory(outside, ControlGroup, gpus);
}

async function occupantOf(
  outside: Outside,
  store: Store,
  unitAsked: Promise<EngineUnit>,
): Promise<Inspection['occupant']> {
  const { occupant } = await store.slot();
  if (occupant === null) return null;
  const release = await store.release(occupant.releaseId);
  const faults = (await faultsOf(outside, release, 'committed', unitAsked)).map(
    ({ part, message }) => `${part}: ${message}`,
  );
  const unit = await unitAsked;
  const systemdState = stateOf(unit);
  return {
    ...occupant,
    state: systemdState === 'serving' && faults.length > 0 ? 'unhealthy' : systemdState,
    faults: systemdState === 'loading' ? [] : faults,
    servedNames: release.servedNames,
    port: release.port,
    invocation: unit.InvocationID,
    seals: sealsOf(release),
  };
}

async function installedUnitOf(
  outside: Outside,
  unitAsked: Promise<EngineUnit>,
): Promise<Inspection['installedUnit']> {
  const { FragmentPath: path } = await unitAsked;
  const text = path === '' ? undefined : await outside.readText(path);
  return text === undefined ? null : { path, text };
}

async function findingsOf(
  outside: Outside,
  store: Store,
  service: string,
  unitAsked: Promise<EngineUnit>,
  wanted: Release | undefined,
): Promise<Finding[]> {
  const [findings, image] = await Promise.all([
    foreignFindings(outside, store, service, wanted?.port, unitAsked),
    wanted && imageState(outside, wanted.image),
  ]);
  if (wanted === undefined) return findings;
  if (image !== 'present') {
    findings.push({
      severity: 'note',
      subject: 'image',
      message: `${wanted.image} is ${image} on the host; it is pulled before the old engine stops`,
    });
  }
  for (const path of [...wanted.deviceFiles, ...wanted.gpus.map((pci) => `/sys/bus/pci/devices/${pci}`)]) {
    if ((await outside.kindOf(path)) === 'absent') {
      findings.push({ severity: 'refuse', subject: 'device', message: `${path} is not on the host` });
    }
  }
  return findings;
}
