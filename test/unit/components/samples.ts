import type { HostConfig } from '../../../shape/host.ts';
import type { Inspection, Outcome, Transaction } from '../../../shape/inspection.ts';
import { planRelease } from '../../../shape/plan.ts';
import { type Claim, type Release, releaseIdOf } from '../../../shape/release.ts';
import { readTemplates } from '../../../templates/templates.ts';
import { suppliedHost, suppliedShape } from '../../fixtures/operator-files.ts';

export const digest = 'a'.repeat(64);

const planned = planRelease({
  host: { ...suppliedHost(), publicName: 'frank' },
  shape: suppliedShape('glm-w4a16'),
  stack: 'glm-w4a16',
  templates: readTemplates(),
  patches: new Map(),
});

export function release(changes: Partial<Release> = {}): Release {
  return {
    ...planned,
    engineIdentity: '1'.repeat(64),
    deadlines: { ...planned.deadlines, bootSeconds: 1200 },
    ...changes,
  };
}

export const qwen = release({
  shape: 'qwen-fp8-mtp4',
  engineIdentity: '2'.repeat(64),
  servedNames: ['qwen'],
});
export const claimOfQwen: Claim = {
  epoch: 11,
  token: 'occupant glm-w4a16, epoch 11 → qwen-fp8-mtp4, release 2',
};

export type Occupant = NonNullable<Inspection['occupant']>;

export function occupant(held: Release = qwen, changes: Partial<Occupant> = {}): Occupant {
  return {
    shape: held.shape,
    releaseId: releaseIdOf(held),
    engineIdentity: held.engineIdentity,
    claim: claimOfQwen,
    since: '2026-11-28T10:00:00Z',
    state: 'serving',
    faults: [],
    servedNames: [...held.servedNames],
    port: held.port,
    invocation: 'c0ffee',
    ...changes,
  };
}

export type RunningTransaction = NonNullable<Inspection['transaction']>;

export function transaction(
  wanted: Release,
  changes: { running: boolean } & Partial<Transaction>,
): RunningTransaction {
  return {
    version: 1 as const,
    kind: 'cutover' as const,
    claim: { epoch: 12, token: `occupant qwen-fp8-mtp4, epoch 12 → ${wanted.shape}` },
    shape: wanted.shape,
    releaseId: releaseIdOf(wanted),
    previousReleaseId: null,
    phase: 'prove' as const,
    startedAt: '2026-11-29T10:00:00Z',
    by: 'dank',
    ...changes,
  };
}

export function inspection(changes: Partial<Inspection> = {}): Inspection {
  return {
    version: 1,
    agent: '0.1.0',
    hostname: 'dankserver',
    service: 'frank-archon',
    at: '2026-11-29T12:00:00Z',
    epoch: 12,
    changed: 'dank at 2026-11-28T10:00:00Z (cutover of qwen-fp8-mtp4)',
    occupant: occupant(),
    transaction: null,
    installedUnit: { path: '/usr/local/lib/systemd/system/frank-archon.service', text: qwen.unit },
    outages: [],
    quarantine: null,
    findings: [],
    preflight: [],
    memAvailableBytes: 80 * 2 ** 30,
    gpus: [{ pci: '0000:03:00.0', vramTotalBytes: 32 * 2 ** 30, vramUsedBytes: 31 * 2 ** 30 }],
    ...changes,
  };
}

export const host: HostConfig = {
  name: 'dankserver',
  address: '10.0.0.5',
  sshPort: 2222,
  user: 'dank',
  hostKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE',
  service: 'frank-archon',
  publicName: 'frank',
  port: 7770,
  modelsRoot: '/home/dank/models',
  stateRoots: [],
  deviceFiles: [],
  gpus: [],
  securityOptions: [],
};

export const outcome: Outcome = {
  kind: 'serving',
  message: 'glm-w4a16 serves and is proved',
  shape: 'glm-w4a16',
  releaseId: releaseIdOf(release()),
  serves: 'glm-w4a16',
  epoch: 13,
  startedAt: '2026-11-29T10:00:00Z',
  endedAt: '2026-11-29T10:07:00Z',
  outageSeconds: 420,
};
