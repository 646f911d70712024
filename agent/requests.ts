import { randomBytes } from 'node:crypto';
import * as z from 'zod';
import { exitCodes, type Outcome, outcomeSchema } from '../shape/inspection.ts';
import { namesOf } from '../shape/names.ts';
import { claimSchema, releaseIdOf, releaseSchema } from '../shape/release.ts';
import type { Outside } from './outside.ts';
import type { Store } from './store.ts';
import { isUnderWay, showUnit } from './systemd.ts';

const requestSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('cutover'),
    by: z.string(),
    release: releaseSchema,
    claim: claimSchema,
    expectedEpoch: z.int().nonnegative(),
  }),
  z.strictObject({ kind: z.literal('vacate'), by: z.string(), claim: claimSchema }),
  z.strictObject({ kind: z.literal('recover'), by: z.string() }),
]);
export type Request = z.infer<typeof requestSchema>;

/** The transient unit's description tells which request it carries out. */
const descriptionPrefix = 'slot request ';

/** A transaction that fails with its record open in the middle is started again, and ends what it finds. */
export const startedAgainExitCode = 70;
/** One that fails before it touched anything is not: the same would come of it. */
export const nothingTouchedExitCode = 71;

/** Requests kept on disk for the record, the newest first. */
const keptRequests = 20;

/** Another transaction holds the slot; nothing was touched. */
export class SlotBusy extends Error {}

/**
 * A request travels as a file to a transient unit which carries it out, so that it goes on when whoever asked
 * is gone. systemd allows one unit of the name: that is the slot's lock, and it needs no cleaning up.
 */
export class Requests {
  readonly #outside: Outside;
  readonly #store: Store;
  readonly #service: string;
  readonly #folder: string;

  constructor(outside: Outside, store: Store, service: string) {
    this.#outside = outside;
    this.#store = store;
    this.#service = service;
    this.#folder = `${namesOf(service).stateFolder}/requests`;
  }

  /** Starts the request, or joins the one under way that wishes the same. Throws `SlotBusy`. */
  async submit(request: Request, program: readonly string[]): Promise<string> {
    const running = await this.#runningFor(request);
    if (running !== undefined) return running;
    await this.#outside.makeFolder(this.#folder);
    await this.#prune();
    const stamp = this.#outside.now().toISOString().replace(/[:.]/g, '-');
    const id = `${stamp}-${randomBytes(3).toString('hex')}`;
    await this.#outside.writeDurably(`${this.#folder}/${id}.request.json`, JSON.stringify(request));
    const started = await this.#outside.run('systemd-run', [
      `--unit=${namesOf(this.#service).cutoverUnit}`,
      '--collect',
      '--quiet',
      `--description=${descriptionPrefix}${id}`,
      '--property=Type=exec',
      // Killed in the middle, it is started again and ends what it finds open.
      '--property=Restart=on-failure',
      `--property=SuccessExitStatus=${Object.values(exitCodes).join(' ')}`,
      '--property=RestartForceExitStatus=SIGTERM SIGINT SIGHUP',
      `--property=RestartPreventExitStatus=${nothingTouchedExitCode}`,
      '--property=RestartSec=1',
      // Ten minutes of dying every few seconds before it is given up until the next request or boot.
      '--property=StartLimitIntervalSec=600',
      '--property=StartLimitBurst=200',
      '--property=OOMScoreAdjust=-900',
      ...program,
      'transact',
      `--service=${this.#service}`,
      `--request=${id}`,
    ]);
    if (started.exitCode === 0) return id;
    await this.#outside.removeDurably(`${this.#folder}/${id}.request.json`);
    const winner = await this.#runningFor(request);
    if (winner !== undefined) return winner;
    throw new Error(`systemd-run: ${started.stderr.trim()}`);
  }

  async read(id: string): Promise<Request> {
    const path = `${this.#folder}/${id}.request.json`;
    const text = await this.#outside.readText(path);
    if (text === undefined) throw new Error(`${path}: no such request`);
    return requestSchema.parse(JSON.parse(text));
  }

  report(id: string, line: string): Promise<void> {
    return this.#outside.append(`${this.#folder}/${id}.progress`, `${line}\n`);
  }

  finish(id: string, outcome: Outcome): Promise<void> {
    return this.#outside.writeDurably(`${this.#folder}/${id}.outcome.json`, JSON.stringify(outcome));
  }

  async outcome(id: string): Promise<Outcome | undefined> {
    const text = await this.#outside.readText(`${this.#folder}/${id}.outcome.json`);
    return text === undefined ? undefined : outcomeSchema.parse(JSON.parse(text));
  }

  /** Passes progress on and returns the outcome. Throws when the transaction's unit ends without one. */
  async follow(id: string, tell: (text: string) => void): Promise<Outcome> {
    let told = 0;
    let goneSince: number | undefined;
    for (let look = 0; ; look += 1) {
      const outcome = await this.outcome(id);
      const progress = (await this.#outside.readText(`${this.#folder}/${id}.progress`)) ?? '';
      tell(progress.slice(told));
      told = progress.length;
      if (outcome !== undefined) return outcome;
      const now = this.#outside.monotonicSeconds();
      // Once a second: each question is a process, on a host that is loading an engine.
      if (look % 10 === 0) goneSince = (await this.#isActive()) ? undefined : (goneSince ?? now);
      if (goneSince !== undefined && now - goneSince > 3) {
        throw new Error(
          `the transaction ended without an outcome; see journalctl -u ${namesOf(this.#service).cutoverUnit}`,
        );
      }
      await this.#outside.sleep(0.1);
    }
  }

  /** Id of the running request if it wishes the same; throws `SlotBusy` if it wishes something else. */
  async #runningFor(request: Request): Promise<string | undefined> {
    const unit = await showUnit(this.#outside, namesOf(this.#service).cutoverUnit, [
      'ActiveState',
      'Description',
    ]);
    const id = unit.Description.startsWith(descriptionPrefix)
      ? unit.Description.slice(descriptionPrefix.length)
      : undefined;
    if (id === undefined || !isUnderWay(unit.ActiveState)) return undefined;
    const other = await this.read(id);
    if (isSameWish(other, request)) return id;
    const record = await this.#store.transaction();
    const startedAt = record === undefined ? this.#outside.now().getTime() : Date.parse(record.startedAt);
    const elapsed = Math.round((this.#outside.now().getTime() - startedAt) / 1000);
    const wish = other.kind === 'cutover' ? `cutover to ${other.release.shape}` : other.kind;
    throw new SlotBusy(
      `the slot is held by a ${wish} of ${other.by}, phase ${record?.phase ?? 'unknown'}, since ${elapsed} s; nothing was touched`,
    );
  }

  async #isActive(): Promise<boolean> {
    const unit = await showUnit(this.#outside, namesOf(this.#service).cutoverUnit, ['ActiveState']);
    return isUnderWay(unit.ActiveState);
  }

  async #prune(): Promise<void> {
    const ids = (await this.#outside.list(this.#folder)).map((name) => name.slice(0, name.indexOf('.')));
    const old = [...new Set(ids)].reverse().slice(keptRequests);
    for (const id of old) {
      for (const part of ['request.json', 'progress', 'outcome.json']) {
        await this.#outside.removeDurably(`${this.#folder}/${id}.${part}`);
      }
    }
  }
}

function isSameWish(one: Request, other: Request): boolean {
  if (one.kind === 'vacate' && other.kind === 'vacate') return one.claim.token === other.claim.token;
  if (one.kind !== 'cutover' || other.kind !== 'cutover') return one.kind === other.kind;
  return one.claim.token === other.claim.token && releaseIdOf(one.release) === releaseIdOf(other.release);
}
