import type { InspectAnswer } from '../remote/inspect.ts';
import type { Inspection, Phase } from '../shape/inspection.ts';
import { differInSeals, sealsOf } from '../shape/payload-seals.ts';
import {
  type Claim,
  claimOf,
  type Manifest,
  manifestVersion,
  type Release,
  releaseIdOf,
  shortId,
} from '../shape/release.ts';

/** What an `up` would do to the slot. Each but `refused` has the claim that the cutover would carry. */
export type Intent =
  /** The wanted release holds the slot: the claim is the one it was last sent with, so nothing differs. */
  | { readonly kind: 'unchanged'; readonly claim: Claim }
  /** The host is on its way to the wanted release already: wait for that transaction's end. */
  | { readonly kind: 'join'; readonly claim: Claim; readonly phase: Phase; readonly by: string }
  /**
   * The engine stays as it is. What surrounds it (checks, deadlines, ownership) is written down anew, and an
   * engine that still loads is waited for and proved.
   */
  | { readonly kind: 'record'; readonly claim: Claim }
  | { readonly kind: 'cutover'; readonly claim: Claim; readonly outage: OutageForecast }
  | { readonly kind: 'refused'; readonly reasons: readonly string[] }
  /** The claim is for display alone: a host refuses it. */
  | { readonly kind: 'unknown'; readonly claim: Claim; readonly reason: string };

/** `history`: the median of past cutovers to this shape on this host. `budget`: there was none yet. */
export interface OutageForecast {
  readonly seconds: number;
  readonly source: 'history' | 'budget';
  /** Number of cutovers the median is taken of. */
  readonly cutovers: number;
  /** Nothing serves now, so nobody loses service while the engine boots. */
  readonly nothingServes: boolean;
}

export function intentOf(answer: InspectAnswer, wanted: Release): Intent {
  if (answer.kind !== 'inspected') {
    const reason = answer.kind === 'unreachable' ? answer.failure.message : answer.message;
    return { kind: 'unknown', claim: claimOfUnseenHost(wanted), reason };
  }
  const { inspection } = answer;
  const { occupant, transaction, quarantine } = inspection;
  const wantedId = releaseIdOf(wanted);

  if (transaction?.running) {
    if (transaction.releaseId === wantedId && transaction.kind !== 'vacate') {
      return { kind: 'join', claim: transaction.claim, phase: transaction.phase, by: transaction.by };
    }
    const { kind, shape, by, phase, startedAt } = transaction;
    const underWay = {
      cutover: `a cutover to ${shape}`,
      record: `a record of ${shape}`,
      vacate: `the end of ${shape}`,
    };
    return {
      kind: 'refused',
      reasons: [
        `${underWay[kind]} is under way: started by ${by} at ${startedAt}, now in phase ${phase}. ` +
          `Wait for its end (\`slot status\` shows it), then preview again`,
      ],
    };
  }

  const holdsSlot = occupant?.releaseId === wantedId;
  const engineStays =
    occupant !== null &&
    occupant.engineIdentity === wanted.engineIdentity &&
    !differInSeals(occupant.seals ?? {}, sealsOf(wanted)) &&
    (occupant.state === 'serving' || occupant.state === 'loading');
  if (holdsSlot && occupant.state === 'serving') return { kind: 'unchanged', claim: occupant.claim };

  if (quarantine) {
    return {
      kind: 'refused',
      reasons: [
        `release ${shortId(wantedId)} failed on this host at ${quarantine.at}, stage "${quarantine.stage}": ` +
          `${firstLine(quarantine.message)}\nChange the shape, or lift the quarantine on the host: sudo slot release forgive ${shortId(wantedId)}`,
      ],
    };
  }
  const claim = claimOf({ epoch: inspection.epoch, occupant: seenOccupantOf(inspection, wantedId) }, wanted);
  const reasons = inspection.findings
    .filter(({ severity, subject }) => severity === 'refuse' && (!engineStays || isOfRecord(subject, wanted)))
    .map((finding) => `${finding.subject}: ${finding.message}`);
  if (reasons.length > 0) return { kind: 'refused', reasons };
  if (engineStays) return { kind: 'record', claim };

  return { kind: 'cutover', claim, outage: outageForecastOf(inspection, wanted) };
}

/** What must hold of a release too whose engine runs already: it must be able to start again. */
function isOfRecord(subject: string, { payload }: Release): boolean {
  return subject === 'patches' || (subject === 'payload' && payload.verify === 'hashes');
}

/**
 * A release that is sent to the slot which it holds already, because its engine is broken, must
 * not carry the claim it was sent with before: without a difference Pulumi does nothing. The invocation changes
 * with every start of an engine.
 */
function seenOccupantOf({ occupant }: Inspection, wantedId: string): string | undefined {
  if (occupant === null) return undefined;
  if (occupant.releaseId !== wantedId) return occupant.shape;
  // While it loads it is the same wish, whichever start of the engine is seen.
  if (occupant.state === 'loading') return `${occupant.shape} (loading)`;
  return `${occupant.shape} (${occupant.state}, invocation ${shortId(occupant.invocation)})`;
}

/** The rest of a failure's message is the end of the engine's log. */
function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}

function claimOfUnseenHost(wanted: Release): Claim {
  return { epoch: 0, token: `host not asked → ${wanted.shape}` };
}

function outageForecastOf(inspection: Inspection, wanted: Release): OutageForecast {
  const state = inspection.occupant?.state ?? 'stopped';
  const nothingServes = state === 'stopped' || state === 'failed';
  const past = inspection.outages;
  return past.length === 0
    ? { seconds: wanted.deadlines.bootSeconds, source: 'budget', cutovers: 0, nothingServes }
    : { seconds: medianOf(past), source: 'history', cutovers: past.length, nothingServes };
}

/** Upper median: of an even number the slower one, because a forecast too short annoys more than one too long. */
function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/**
 * The text that the cutover sends to the host, one value a line so that Pulumi's diff of it can be read. Equal
 * claim and release give equal bytes: that is what makes a second `up` see nothing to do.
 */
export function manifestText(claim: Claim, release: Release): string {
  const manifest: Manifest = { version: manifestVersion, claim, release };
  return `${JSON.stringify(withSortedKeys(manifest), null, 2)}\n`;
}

function withSortedKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSortedKeys);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, withSortedKeys(inner)]));
}
