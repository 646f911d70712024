import type { Occupant, Outcome, OutcomeKind, Phase, SlotState, Transaction } from '../shape/inspection.ts';
import { identityLabel, namesOf } from '../shape/names.ts';
import { differInSeals, sealsOf } from '../shape/payload-seals.ts';
import { type Claim, type Release, releaseIdOf, shortId } from '../shape/release.ts';
import { faultsOf } from './conjunction.ts';
import { engineUnit, stateOf } from './engine.ts';
import { applyPatches } from './patches.ts';
import { inspectContainer } from './podman.ts';
import { preflight, verifySealed } from './preflight.ts';
import {
  awaitReady,
  commitUnit,
  drain,
  loadTrial,
  prove,
  removeTrial,
  removeUnits,
  type Slot,
  StageFailure,
  start,
  stop,
  take,
  verifyEmpty,
} from './stages.ts';
import type { Store } from './store.ts';

export interface TransactionContext extends Slot {
  readonly store: Store;
  /** Login that asked for it. */
  readonly by: string;
}

export interface CutoverRequest {
  readonly release: Release;
  readonly claim: Claim;
  /** Epoch that whoever asks has seen: compare-and-swap. */
  readonly expectedEpoch: number;
}

/**
 * Changes the occupant. Before the old engine is stopped every failure is a refusal with nothing touched;
 * after it, the wanted release serves and is proved, or what was there before is brought back the same way.
 */
export async function cutover(context: TransactionContext, request: CutoverRequest): Promise<Outcome> {
  const { store } = context;
  const { release, claim } = request;
  const releaseId = releaseIdOf(release);
  const slot = await store.slot();
  const sameEngine = await isServedAlready(context, slot, release);
  const record: Transaction = {
    version: 1,
    kind: sameEngine ? 'record' : 'cutover',
    claim,
    shape: release.shape,
    releaseId,
    previousReleaseId: slot.occupant?.releaseId ?? null,
    phase: sameEngine ? 'record' : 'preflight',
    startedAt: context.outside.now().toISOString(),
    by: context.by,
  };
  const isOwn = slot.occupant?.claim.token === claim.token && slot.occupant.releaseId === releaseId;
  if (!isOwn && request.expectedEpoch !== slot.epoch) {
    return refuse(
      context,
      record,
      new StageFailure(
        'epoch',
        `epoch ${request.expectedEpoch} was seen, the slot is at epoch ${slot.epoch} with ${slot.occupant?.shape ?? 'nobody'}; moved by ${slot.changed}. Nothing was touched; run preview again`,
      ),
    );
  }
  return sameEngine ? recordOnly(context, record, release, slot) : replace(context, record, release);
}

/** Whether the wanted engine runs, and is healthy or on its way to be. */
async function isServedAlready(
  context: TransactionContext,
  { occupant }: SlotState,
  release: Release,
): Promise<boolean> {
  if (occupant?.engineIdentity !== release.engineIdentity) return false;
  const state = stateOf(await engineUnit(context.outside, context.service));
  if (state !== 'serving' && state !== 'loading') return false;
  const recorded = await context.store.release(occupant.releaseId);
  if (differInSeals(sealsOf(recorded), sealsOf(release))) return false;
  return state === 'loading' || (await faultsOf(context.outside, recorded, 'committed')).length === 0;
}

/** What the engine runs from may never have been asked of this release: it must be able to start from it again. */
async function requireStartable(context: TransactionContext, release: Release): Promise<void> {
  const asked = {
    patches: () => applyPatches(context.outside, release),
    'payload hashes': () => verifySealed(context, release),
  };
  for (const [what, ask] of Object.entries(asked)) {
    try {
      await ask();
    } catch (error) {
      throw new StageFailure(`record: ${what}`, (error as Error).message);
    }
  }
}

/** The engine that runs is the wanted one: it is proved and recorded, never restarted. */
async function recordOnly(
  context: TransactionContext,
  record: Transaction,
  release: Release,
  slot: SlotState,
): Promise<Outcome> {
  await enter(context, record, 'record');
  await context.progress.say(`${release.shape} runs with this engine identity already: no restart`);
  try {
    await awaitReady(context, release, 'committed', await expectedBoot(context, release));
    await requireStartable(context, release);
    await commitUnit(context, release);
    await prove(context, release, 'committed');
  } catch (error) {
    const previous = slot.occupant && (await context.store.release(slot.occupant.releaseId));
    if (previous) await commitUnit(context, previous);
    return refuse(context, record, asStageFailure(error, record));
  }
  return settle(
    context,
    record,
    release,
    `${release.shape} serves and is proved; the engine was not restarted`,
  );
}

async function replace(context: TransactionContext, record: Transaction, release: Release): Promise<Outcome> {
  const { store } = context;
  let current = record;
  try {
    await enter(context, current, 'preflight');
    const quarantine = await store.quarantine(record.releaseId);
    if (quarantine !== undefined) {
      throw new StageFailure(
        'preflight: quarantine',
        `this release failed at ${quarantine.at} (${quarantine.stage}: ${firstLine(quarantine.message)}); change the shape, or lift it: slot release forgive ${shortId(record.releaseId)}`,
      );
    }
    await preflight({ ...context, release });
    await store.saveRelease(release);
  } catch (error) {
    return refuse(context, current, asStageFailure(error, current));
  }
  const previous =
    record.previousReleaseId === null ? undefined : await store.release(record.previousReleaseId);
  try {
    if (previous) await drain(context, previous);
    current = await enter(context, current, 'release-slot');
    await loadTrial(context, release);
    current = await enter(context, current, 'release-slot', {
      stoppedAt: context.outside.now().toISOString(),
    });
    await empty(context, previous ?? release, release);
    current = await enter(context, current, 'take');
    await take(context, release);
    current = await enter(context, current, 'prove');
    await awaitReady(context, release, 'trial', await expectedBoot(context, release));
    const readyAt = context.outside.now().toISOString();
    await prove(context, release, 'trial');
    current = await enter(context, current, 'commit', { readyAt });
    return await commit(context, current, release);
  } catch (error) {
    const failure = asStageFailure(error, current);
    // What fails before the engine runs says nothing about the release.
    const hadItsChance = current.phase === 'prove' || current.phase === 'commit';
    if (hadItsChance && record.releaseId !== record.previousReleaseId) {
      const at = context.outside.now().toISOString();
      const { stage, message } = failure;
      await orUnrecorded(context, store.saveQuarantine(record.releaseId, { at, stage, message }));
    }
    return restore(context, current, failure);
  }
}

async function commit(context: TransactionContext, record: Transaction, release: Release): Promise<Outcome> {
  await commitUnit(context, release);
  return settle(context, record, release, `${release.shape} serves and is proved`);
}

/**
 * Brings back what held the slot before, by the same phases and the same proofs. What already runs of it
 * (after a reboot systemd starts the committed unit by itself) is left to run.
 */
export async function restore(
  context: TransactionContext,
  record: Transaction,
  failure: StageFailure,
): Promise<Outcome> {
  const { store } = context;
  let current: Transaction = { ...record, phase: 'restore' };
  context.progress.enter('restore');
  await orUnrecorded(context, store.saveTransaction(current));
  await context.progress.say(`failed at ${failure.stage}: ${firstLine(failure.message)}`);
  const log = failure.engineLog === undefined ? {} : { engineLog: failure.engineLog };
  const changed = changedBy(context, `failed cutover to ${record.shape}`);
  const slot = await store.slot();
  const epoch = slot.epoch + 1;
  try {
    const failed = await store.release(record.releaseId);
    if (record.previousReleaseId === null) {
      await empty(context, failed, failed);
      await removeUnits(context);
      await orUnrecorded(context, store.saveSlot({ ...slot, epoch, changed, occupant: null }));
      return await close(context, current, 'restored', {
        ...log,
        stage: failure.stage,
        message: `${failure.message}\nThe slot is empty, as it was before.`,
        serves: null,
      });
    }
    const previous = await store.release(record.previousReleaseId);
    await context.progress.say(`coming back to ${previous.shape}`);
    if (!(await standsAlone(context, previous))) {
      if (!(await stillRuns(context, previous, failed))) await empty(context, failed, previous);
      await removeTrial(context);
      await commitUnit(context, previous);
    }
    await start(context);
    await awaitReady(context, previous, 'committed', await expectedBoot(context, previous));
    current = { ...current, readyAt: context.outside.now().toISOString() };
    await prove(context, previous, 'committed');
    const occupant = await occupantBefore(context, slot, previous);
    await orUnrecorded(context, store.saveSlot({ ...slot, epoch, changed, occupant }));
    return await close(context, current, 'restored', {
      ...log,
      stage: failure.stage,
      message: `${failure.message}\n${previous.shape} serves again and is proved.`,
      serves: previous.shape,
    });
  } catch (error) {
    const second = asStageFailure(error, current);
    await leaveToSystemd(context, record);
    const unusable = failure.hostUnusable || second.hostUnusable;
    return close(context, current, unusable ? 'unusable' : 'down', {
      ...log,
      stage: failure.stage,
      message: `${failure.message}\nComing back failed too, at ${second.stage}: ${second.message}${unusable ? '\nThe slot cannot be emptied: reboot the host.' : ''}`,
      serves: null,
    });
  }
}

/** The occupant on record, or who it was when the record already names the one that failed. */
async function occupantBefore(
  { store, outside }: TransactionContext,
  slot: SlotState,
  previous: Release,
): Promise<Occupant | null> {
  const releaseId = releaseIdOf(previous);
  if (slot.occupant?.releaseId === releaseId) return slot.occupant;
  const claim = await store.claim(releaseId);
  if (claim === undefined) return slot.occupant;
  const { shape, engineIdentity } = previous;
  return { shape, releaseId, engineIdentity, claim, since: outside.now().toISOString() };
}

/**
 * What could not be brought back by hand is left as the committed unit, started: systemd goes on trying, and
 * succeeds when the obstacle goes.
 */
async function leaveToSystemd(context: TransactionContext, record: Transaction): Promise<void> {
  if (record.previousReleaseId === null) return;
  try {
    const previous = await context.store.release(record.previousReleaseId);
    await removeTrial(context);
    await commitUnit(context, previous);
    await start(context);
  } catch (error) {
    await context.progress.say(`not left to systemd: ${(error as Error).message}`);
  }
}

/** Ends what a transaction left open when its process or its host died. */
export async function recover(context: TransactionContext): Promise<Outcome | undefined> {
  const { store, progress } = context;
  const record = await store.transaction();
  if (record === undefined || record.outcome !== undefined) return undefined;
  progress.enter(record.phase);
  await progress.say(`found the transaction for ${record.shape} interrupted`);
  const interrupted = new StageFailure(
    `${record.phase}: interrupted`,
    'the transaction or its host was cut off',
  );
  if (record.kind === 'vacate') return vacateSlot(context, record);
  switch (record.phase) {
    case 'preflight':
      return refuse(context, record, interrupted);
    case 'record': {
      const release = await recordedOccupant(context);
      if (release) await commitUnit(context, release);
      return refuse(context, record, interrupted);
    }
    case 'commit': {
      // The proof was had. What was on trial is committed if it still stands, in either place.
      const release = await store.release(record.releaseId);
      const names = namesOf(context.service);
      const committed = (await context.outside.readText(names.committedUnitPath)) === release.unit;
      const onTrial = (await context.outside.readText(names.trialUnitPath)) === release.unit;
      if (!committed && !onTrial) return restore(context, record, interrupted);
      await commitUnit(context, release);
      await start(context);
      try {
        await awaitReady(context, release, 'committed', await expectedBoot(context, release));
        await prove(context, release, 'committed');
      } catch (error) {
        return restore(context, record, asStageFailure(error, record));
      }
      return commit(context, record, release);
    }
    case 'release-slot':
    case 'take':
    case 'prove':
    case 'restore':
      return restore(context, record, interrupted);
  }
}

/** Stops the engine and leaves the slot empty, if the claim still holds it. */
export async function vacate(context: TransactionContext, claim: Claim): Promise<Outcome> {
  const { occupant } = await context.store.slot();
  const record: Transaction = {
    version: 1,
    kind: 'vacate',
    claim,
    shape: occupant?.shape ?? 'nobody',
    releaseId: occupant?.releaseId ?? '',
    previousReleaseId: occupant?.releaseId ?? null,
    phase: 'release-slot',
    startedAt: context.outside.now().toISOString(),
    by: context.by,
  };
  if (occupant?.claim.token === claim.token) return vacateSlot(context, record);
  const holder = occupant === null ? 'nobody' : occupant.shape;
  return refuse(
    context,
    record,
    new StageFailure('claim', `the slot is held by ${holder} under another claim`),
  );
}

async function vacateSlot(context: TransactionContext, record: Transaction): Promise<Outcome> {
  const { store } = context;
  const release = await store.release(record.releaseId);
  const current = await enter(context, record, 'release-slot', {
    stoppedAt: context.outside.now().toISOString(),
  });
  try {
    await drain(context, release);
    await empty(context, release, release);
  } catch (error) {
    const failure = asStageFailure(error, current);
    return close(context, current, 'unusable', {
      stage: failure.stage,
      message: failure.message,
      serves: null,
    });
  }
  await removeUnits(context);
  const slot = await store.slot();
  await store.saveSlot({
    ...slot,
    epoch: slot.epoch + 1,
    occupant: null,
    changed: changedBy(context, `${record.shape} taken out of the slot`),
  });
  return close(context, current, 'vacated', { message: 'the slot is empty', serves: null });
}

/** Stops what runs and waits until the slot is free for `next`. */
async function empty(context: TransactionContext, running: Release, next: Release): Promise<void> {
  await stop(context, running.deadlines.stopSeconds);
  await verifyEmpty(context, running.container, next, running.deadlines.stopSeconds);
  await context.progress.say('the slot is empty: unit, container, port, memory and GPUs');
}

/**
 * Makes the proved release the occupant on record. What was proved and is what boots is not undone because it
 * cannot be written down: the transaction then stays open, and the next recovery records it.
 */
async function settle(
  context: TransactionContext,
  record: Transaction,
  release: Release,
  message: string,
): Promise<Outcome> {
  const told = { message, serves: release.shape };
  try {
    await recordOccupant(context, record, release);
  } catch (error) {
    const reason = `not on record yet: ${(error as Error).message}`;
    await context.progress.say(`serving: ${message}; ${reason}`);
    return outcomeOf(context, record, 'serving', { ...told, message: `${message}; ${reason}` });
  }
  return close(context, record, 'serving', told);
}

async function recordOccupant(
  context: TransactionContext,
  record: Transaction,
  release: Release,
): Promise<void> {
  const { store } = context;
  const slot = await store.slot();
  const isSame =
    slot.occupant?.releaseId === record.releaseId && slot.occupant.claim.token === record.claim.token;
  if (isSame) return;
  const occupant: Occupant = {
    shape: release.shape,
    releaseId: await store.saveRelease(release),
    engineIdentity: release.engineIdentity,
    claim: record.claim,
    since: context.outside.now().toISOString(),
  };
  const displaced =
    record.kind === 'cutover' && slot.occupant !== null && slot.occupant.releaseId !== record.releaseId;
  await store.saveClaim(record.releaseId, record.claim);
  await store.saveSlot({
    version: 1,
    epoch: slot.epoch + 1,
    changed: changedBy(context, `${record.kind} of ${release.shape}`),
    occupant,
    previousReleaseId: displaced ? (slot.occupant?.releaseId ?? null) : slot.previousReleaseId,
  });
}

async function refuse(
  context: TransactionContext,
  record: Transaction,
  failure: StageFailure,
): Promise<Outcome> {
  const { occupant } = await context.store.slot();
  const runs = stateOf(await engineUnit(context.outside, context.service)) === 'serving';
  return close(context, record, 'refused', {
    stage: failure.stage,
    message: failure.message,
    serves: runs ? (occupant?.shape ?? null) : null,
  });
}

/** Announces a phase on disk before its first act. */
async function enter(
  context: TransactionContext,
  record: Transaction,
  phase: Phase,
  more: Partial<Transaction> = {},
): Promise<Transaction> {
  const entered: Transaction = { ...record, ...more, phase };
  await context.store.saveTransaction(entered);
  context.progress.enter(phase);
  return entered;
}

type Told = Pick<Outcome, 'message' | 'serves'> & Partial<Pick<Outcome, 'stage' | 'engineLog'>>;

async function outcomeOf(
  { store, outside }: TransactionContext,
  record: Transaction,
  kind: OutcomeKind,
  told: Told,
): Promise<Outcome> {
  const endedAt = outside.now();
  const { stoppedAt, readyAt = endedAt.toISOString() } = record;
  return {
    kind,
    ...told,
    shape: record.shape,
    releaseId: record.releaseId,
    epoch: (await store.slot()).epoch,
    startedAt: record.startedAt,
    endedAt: endedAt.toISOString(),
    outageSeconds:
      stoppedAt === undefined ? 0 : Math.max(0, (Date.parse(readyAt) - Date.parse(stoppedAt)) / 1000),
  };
}

async function close(
  context: TransactionContext,
  record: Transaction,
  kind: OutcomeKind,
  told: Told,
): Promise<Outcome> {
  const { store, progress } = context;
  const outcome = await outcomeOf(context, record, kind, told);
  await orUnrecorded(context, store.addToHistory(outcome));
  await orUnrecorded(context, store.saveTransaction({ ...record, outcome }));
  const stage = outcome.stage === undefined ? '' : ` at ${outcome.stage}`;
  await progress.say(`${kind}${stage}: ${outcome.message}`);
  if (outcome.engineLog !== undefined) await progress.say(`engine log: ${outcome.engineLog}`);
  return outcome;
}

/**
 * Whether this release's unit is what systemd reads, with nothing on trial over it. What runs then is of this
 * release or nothing: a trial's unit is only taken away after its engine is gone.
 */
async function standsAlone(context: TransactionContext, release: Release): Promise<boolean> {
  const names = namesOf(context.service);
  const unit = await engineUnit(context.outside, context.service);
  if (unit.FragmentPath !== names.committedUnitPath || unit.NeedDaemonReload !== 'no') return false;
  if ((await context.outside.readText(names.trialUnitPath)) !== undefined) return false;
  return (await context.outside.readText(names.committedUnitPath)) === release.unit;
}

/** Whether the engine of before was never stopped: then it is left to run, under its own unit again. */
async function stillRuns(context: TransactionContext, release: Release, failed: Release): Promise<boolean> {
  if (release.engineIdentity === failed.engineIdentity) return false;
  const [unit, container] = await Promise.all([
    engineUnit(context.outside, context.service),
    inspectContainer(context.outside, release.container),
  ]);
  const isOfRelease = container?.Config.Labels?.[identityLabel] === release.engineIdentity;
  return unit.ActiveState === 'active' && container?.State.Status === 'running' && isOfRelease;
}

async function recordedOccupant({ store }: TransactionContext): Promise<Release | undefined> {
  const { occupant } = await store.slot();
  return occupant === null ? undefined : store.release(occupant.releaseId);
}

/** Median outage of this shape's past cutovers on this host. */
async function expectedBoot({ store }: TransactionContext, release: Release): Promise<number | undefined> {
  const seconds = outagesOf(await store.history(), release.shape).sort((a, b) => a - b);
  return seconds[Math.floor(seconds.length / 2)];
}

/** Outages in seconds of the cutovers that brought this shape up, oldest first. */
export function outagesOf(history: readonly Outcome[], shape: string): number[] {
  return history
    .filter((outcome) => outcome.kind === 'serving' && outcome.serves === shape && outcome.outageSeconds > 0)
    .map((outcome) => outcome.outageSeconds);
}

function asStageFailure(error: unknown, record: Transaction): StageFailure {
  if (error instanceof StageFailure) return error;
  return new StageFailure(record.phase, error instanceof Error ? error.message : String(error));
}

/**
 * On the way back, and once the slot's fate is settled, a record that cannot be written (a full disk) must not
 * stop the act that it tells of. What stays open is ended, without harm, by the next recovery.
 */
async function orUnrecorded(context: TransactionContext, writing: Promise<void>): Promise<void> {
  await writing.catch((error: Error) => context.progress.say(`not recorded: ${error.message}`));
}

function changedBy({ outside, by }: TransactionContext, what: string): string {
  return `${by} at ${outside.now().toISOString()} (${what})`;
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}
