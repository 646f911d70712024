import * as z from 'zod';
import { payloadFactsSchema } from './payload-facts.ts';
import { claimSchema } from './release.ts';

/** How a transaction ended. The agent's exit codes say the same, see `exitCodes`. */
export const outcomeKinds = ['serving', 'vacated', 'refused', 'restored', 'down', 'unusable'] as const;
export type OutcomeKind = (typeof outcomeKinds)[number];

/**
 * serving: the wanted release holds the slot and is proved. vacated: the slot was
 * emptied as asked. refused: nothing was touched. restored: the
 * wanted release failed, what held the slot before serves again and is proved (an empty slot is empty
 * again). down: neither serves. unusable: the slot cannot be emptied, a reboot is advised.
 */
export const exitCodes: Readonly<Record<OutcomeKind, number>> = {
  serving: 0,
  vacated: 0,
  refused: 10,
  restored: 20,
  down: 30,
  unusable: 40,
};

export const phases = ['preflight', 'release-slot', 'take', 'prove', 'commit', 'restore', 'record'] as const;
export type Phase = (typeof phases)[number];

/** Whether a transaction that ends in this phase has left the engine alone. */
export function isBeforeTheStop(phase: Phase): boolean {
  return phase === 'preflight' || phase === 'record';
}

export const outcomeSchema = z.strictObject({
  kind: z.enum(outcomeKinds),
  /** The stage that failed, e.g. `prove: served names`; absent when all went well. */
  stage: z.string().optional(),
  message: z.string(),
  shape: z.string(),
  releaseId: z.string(),
  /** Shape that serves now, proved; null: none. */
  serves: z.string().nullable(),
  epoch: z.int(),
  startedAt: z.string(),
  endedAt: z.string(),
  /** From the old engine's stop until the one in its place was ready; 0: no outage. */
  outageSeconds: z.number(),
  /** The failed or replaced engine's log on the host. */
  engineLog: z.string().optional(),
});
export type Outcome = z.infer<typeof outcomeSchema>;

const occupantSchema = z.strictObject({
  shape: z.string(),
  releaseId: z.string(),
  engineIdentity: z.string(),
  claim: claimSchema,
  since: z.string(),
});
export type Occupant = z.infer<typeof occupantSchema>;

/** What the host records of the slot between transactions. */
export const slotStateSchema = z.strictObject({
  version: z.literal(1),
  /** Grows with every change of occupant. */
  epoch: z.int().nonnegative(),
  /** Who changed the occupant last, when and by what, for people. */
  changed: z.string(),
  occupant: occupantSchema.nullable(),
  /** Release that held the slot before the occupant: what `slot rollback` goes back to. */
  previousReleaseId: z.string().nullable(),
});
export type SlotState = z.infer<typeof slotStateSchema>;

export const transactionSchema = z.strictObject({
  version: z.literal(1),
  /** `cutover`: another engine. `record`: the engine goes on, what is recorded of it changes. `vacate`: the slot becomes empty. */
  kind: z.enum(['cutover', 'record', 'vacate']),
  claim: claimSchema,
  shape: z.string(),
  releaseId: z.string(),
  /** Release to come back to; null: the slot was empty. */
  previousReleaseId: z.string().nullable(),
  phase: z.enum(phases),
  startedAt: z.string(),
  /** Set when the old engine is told to stop. */
  stoppedAt: z.string().optional(),
  /** Set when the engine that took its place was ready. */
  readyAt: z.string().optional(),
  /** Login that asked for it, as sudo says. */
  by: z.string(),
  outcome: outcomeSchema.optional(),
});
export type Transaction = z.infer<typeof transactionSchema>;

/** State of the engine as the host sees it at one moment, without asking the model anything. */
export const engineStates = ['serving', 'loading', 'stopped', 'failed', 'unhealthy'] as const;

export const findingSchema = z.strictObject({
  /** `refuse`: a cutover would be refused. `warn`: it would go on. `note`: for information. */
  severity: z.enum(['refuse', 'warn', 'note']),
  subject: z.string(),
  message: z.string(),
});
export type Finding = z.infer<typeof findingSchema>;

/** Answer of `slot inspect`: the quick look at a host, without a container started or a byte written. */
export const inspectionSchema = z.strictObject({
  version: z.literal(1),
  agent: z.string(),
  hostname: z.string(),
  service: z.string(),
  at: z.string(),
  epoch: z.int().nonnegative(),
  /** Who changed the occupant last, when and by what, for people. */
  changed: z.string(),
  occupant: occupantSchema
    .extend({
      state: z.enum(engineStates),
      /** Parts of the conjunction that do not hold. */
      faults: z.array(z.string()),
      servedNames: z.array(z.string()),
      port: z.int(),
      /** systemd's InvocationID: changes with every start of the engine. */
      invocation: z.string(),
      /** Ids of manifests by path; absent in answers of agents of before there were seals. */
      seals: z.record(z.string(), z.string()).optional(),
    })
    .nullable(),
  /** The transaction under way, or the last one. */
  transaction: transactionSchema.extend({ running: z.boolean() }).nullable(),
  installedUnit: z.strictObject({ path: z.string(), text: z.string() }).nullable(),
  /** Outages of past cutovers to this shape on this host, in seconds, newest last. */
  outages: z.array(z.number()),
  quarantine: z.strictObject({ at: z.string(), stage: z.string(), message: z.string() }).nullable(),
  findings: z.array(findingSchema),
  /** Cached results of deep checks of this release, with their time. */
  preflight: z.array(z.strictObject({ check: z.string(), at: z.string(), result: z.string() })),
  memAvailableBytes: z.int(),
  gpus: z.array(z.strictObject({ pci: z.string(), vramTotalBytes: z.int(), vramUsedBytes: z.int() })),
  /** The host's memory beyond MemAvailable; absent in answers of agents of before there was a memory plan. */
  memory: z
    .strictObject({
      totalBytes: z.int(),
      /** MemAvailable, and what the engine that runs now gives back when it is stopped. */
      afterStopBytes: z.int(),
      /** What all GPU drivers may allocate of the host's memory; null: the kernel shows no such limit. */
      gpuPagesBytes: z.int().nullable(),
    })
    .optional(),
  /** Of the wanted release's payload; null: it is of a kind that says nothing, or a finding says why not. */
  payload: payloadFactsSchema.nullable().optional(),
});
export type Inspection = z.infer<typeof inspectionSchema>;
