import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff';
import type { InspectAnswer } from '../remote/inspect.ts';
import type { Inspection } from '../shape/inspection.ts';
import { measuredOf } from '../shape/measured.ts';
import { memoryPlanOf } from '../shape/memory/plan.ts';
import { memoryTable } from '../shape/memory/table.ts';
import { namesOf } from '../shape/names.ts';
import { type Release, releaseIdOf, shortId } from '../shape/release.ts';
import { mayBeShown, type Review, unitNotShown } from '../shape/review.ts';
import { reviewText } from '../shape/review-text.ts';
import type { Intent, OutageForecast } from './intent.ts';

export interface ReportInput {
  /** Name of the host as the operator calls it. */
  readonly host: string;
  readonly answer: InspectAnswer;
  readonly intent: Intent;
  readonly wanted: Release;
  readonly review: Review;
}

/** What a reviewer reads in a preview: one line when nothing changes, otherwise who, what, how long, and the diff. */
export function reportOf(input: ReportInput): string {
  return [hostReport(input), ...memoryReport(input), ...reviewText(input.review)].join('\n');
}

/** What the shape needs of memory, where something would change. */
function memoryReport({ answer, intent, wanted }: ReportInput): readonly string[] {
  if (intent.kind === 'unchanged') return [];
  return memoryTable(
    memoryPlanOf(wanted, answer.kind === 'inspected' ? measuredOf(answer.inspection) : undefined),
  );
}

function hostReport({ host, answer, intent, wanted, review }: ReportInput): string {
  const diffFrom = (installed: Inspection['installedUnit']): string =>
    mayBeShown(review) ? unitDiff(installed, wanted) : unitNotShown;
  if (answer.kind !== 'inspected') {
    return [
      `${host} did not answer, this is the static plan: the epoch, the occupant and the outage are not known`,
      ...table([['wanted', `${wanted.shape}, release ${shortId(releaseIdOf(wanted))}`]]),
      diffFrom(null),
    ].join('\n');
  }
  const { inspection } = answer;
  if (intent.kind === 'unchanged') {
    return [`${occupantOf(inspection)} on ${host}: nothing to change`, ...table(findingsOf(inspection))].join(
      '\n',
    );
  }
  return [
    `slot ${inspection.service} on ${host}`,
    ...table([
      ['holds now', occupantOf(inspection)],
      ['wanted', `${wanted.shape}, release ${shortId(releaseIdOf(wanted))}`],
      ['change', changeOf(intent, wanted, inspection.occupant?.state === 'loading')],
      ['memory', `${gibibytes(inspection.memAvailableBytes)} available now${gateOf(wanted)}`],
      ...inspection.gpus.map(
        (gpu): Row => [
          'gpu',
          `${gpu.pci} ${gibibytes(gpu.vramUsedBytes)} of ${gibibytes(gpu.vramTotalBytes)} in use`,
        ],
      ),
      ...preflightOf(inspection),
      ...findingsOf(inspection),
    ]),
    diffFrom(inspection.installedUnit),
  ]
    .filter((part) => part !== '')
    .join('\n');
}

type Row = readonly [label: string, text: string];

function table(rows: readonly Row[]): string[] {
  return rows.map(([label, text]) => `  ${label.padEnd(10)} ${text.replaceAll('\n', `\n${' '.repeat(13)}`)}`);
}

function occupantOf({ occupant, transaction, epoch, at }: Inspection): string {
  if (occupant === null) return `nobody (epoch ${epoch})`;
  const held = `${occupant.shape}, release ${shortId(occupant.releaseId)}`;
  // What runs in the middle of a cutover says nothing of the occupant on record.
  if (transaction?.running)
    return `${held}, ${transaction.kind} of ${transaction.shape} under way (epoch ${epoch})`;
  const faults = occupant.faults.length === 0 ? '' : `, ${occupant.faults.join(', ')}`;
  const since = duration((Date.parse(at) - Date.parse(occupant.since)) / 1000);
  return `${held}, ${occupant.state}${faults}, for ${since} (epoch ${epoch})`;
}

function changeOf(intent: Intent, wanted: Release, engineLoads: boolean): string {
  switch (intent.kind) {
    case 'unchanged':
      return 'none';
    case 'join':
      return `none of its own: joins the cutover that ${intent.by} started, now in phase ${intent.phase}`;
    case 'record':
      return engineLoads
        ? 'record only, no outage: the engine still loads, it is waited for and proved'
        : 'record only, no outage: the engine is the same, its checks and record are not';
    case 'cutover':
      return `cutover to ${wanted.shape}: ${outageText(intent.outage)}`;
    case 'refused':
      return 'refused';
    case 'unknown':
      return 'not known';
    default:
      return intent satisfies never;
  }
}

export function outageText(outage: OutageForecast): string {
  const what = outage.nothingServes ? 'no outage, nothing serves now; boot' : 'outage';
  return outage.source === 'history'
    ? `${what} ≈ ${duration(outage.seconds)} (from ${outage.cutovers} ${outage.cutovers === 1 ? 'cutover' : 'cutovers'} on this host)`
    : `${what}: no history, the shape's boot budget is ${duration(outage.seconds)}`;
}

function gateOf(wanted: Release): string {
  return wanted.memoryGateBytes === 0
    ? ''
    : `, ${gibibytes(wanted.memoryGateBytes)} needed once the old engine is gone`;
}

/** Results of deep checks of an earlier run, under the minute in which they were had. */
function preflightOf({ preflight }: Inspection): Row[] {
  const minutes = Map.groupBy(preflight, ({ at }) => at.slice(0, 16).replace('T', ' '));
  return [...minutes].map(
    ([minute, checks]): Row => [
      'preflight',
      [`at ${minute} UTC`, ...checks.map(({ check, result }) => `${check}: ${result}`)].join('\n'),
    ],
  );
}

function findingsOf(inspection: Inspection): Row[] {
  return inspection.findings.map((finding) => [finding.severity, `${finding.subject}: ${finding.message}`]);
}

/** Empty when the installed unit is the wanted one. The environment is part of the unit's text. */
export function unitDiff(installed: Inspection['installedUnit'], wanted: Release): string {
  if (installed?.text === wanted.unit) return '';
  const patch = createTwoFilesPatch(
    installed?.path ?? '/dev/null',
    namesOf(wanted.service).committedUnitPath,
    installed?.text ?? '',
    wanted.unit,
    'installed',
    'wanted',
    { context: 1, headerOptions: FILE_HEADERS_ONLY },
  );
  return patch.trimEnd();
}

export function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

/** One unit, rounded: `42 s`, `7 min`, `5 h`, `3 days`. */
export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  if (seconds < 36 * 3600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}
