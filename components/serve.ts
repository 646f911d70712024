import { join } from 'node:path';
import * as pulumi from '@pulumi/pulumi';
import { type InspectAnswer, inspectHost } from '../remote/inspect.ts';
import { measuredOf } from '../shape/measured.ts';
import { refusalsIn, reviewOf } from '../shape/review.ts';
import { reviewText, verdictText } from '../shape/review-text.ts';
import { type Intent, intentOf } from './intent.ts';
import type { PlannedShape } from './planned-shape.ts';
import {
  forgetPreviewNote,
  type PreviewNote,
  staleBecause,
  takePreviewNote,
  writePreviewNote,
} from './preview-note.ts';
import { reportOf } from './report.ts';
import type { ServedShape } from './served-shape.ts';

/**
 * Asks the host who holds the slot, says what would change, and registers the shape with the claim that makes
 * Pulumi see exactly that. A refusal, or a host that does not answer an update, ends the program before any
 * resource: nothing is touched.
 */
export async function serveShape(
  projectFolder: string,
  stack: string,
  { host, release }: PlannedShape,
  secretValues: pulumi.Input<Readonly<Record<string, string>>> = {},
): Promise<ServedShape> {
  const isPreview = pulumi.runtime.isDryRun();
  // The host's answer takes longer than loading the components.
  const [answer, { ServedShape }] = await Promise.all([
    inspectHost(host, release),
    import('./served-shape.ts'),
  ]);
  const intent = intentOf(answer, release);
  const measured = answer.kind === 'inspected' ? measuredOf(answer.inspection) : undefined;
  const review = reviewOf(release, measured);
  const note: PreviewNote = {
    folder: join(projectFolder, '.slot'),
    stack,
    host: `${host.address}:${host.sshPort}`,
  };
  if (isPreview) {
    await forgetPreviewNote(note);
    await pulumi.log.info(reportOf({ host: host.name, answer, intent, wanted: release, review }));
  } else {
    await refuseIfStale(note, answer, intent);
  }
  if (refusalsIn(review).length > 0) {
    // A preview has told each with its reason above.
    const said = isPreview ? [verdictText(review)] : reviewText(review);
    throw new pulumi.RunError(['refused by rule, nothing was touched', ...said].join('\n'));
  }
  if (intent.kind === 'refused') {
    throw new pulumi.RunError(['refused, nothing was touched', ...intent.reasons].join('\n'));
  }
  if (intent.kind === 'unknown') {
    const answeredWithAnotherKey = answer.kind === 'unreachable' && answer.failure.kind === 'host-key';
    if (!isPreview || answeredWithAnotherKey)
      throw new pulumi.RunError(`${intent.reason}\nNothing was touched.`);
    await pulumi.log.warn(intent.reason);
  }
  if (isPreview) await writePreviewNote(note, answer, intent.claim);
  return new ServedShape(stack, { host, release, claim: intent.claim, secretValues });
}

async function refuseIfStale(note: PreviewNote, answer: InspectAnswer, intent: Intent): Promise<void> {
  const shown = await takePreviewNote(note);
  if (shown === undefined || answer.kind !== 'inspected') return;
  const claim = intent.kind === 'refused' ? undefined : intent.claim;
  const stale = staleBecause(shown, answer.inspection, claim);
  if (stale !== undefined) throw new pulumi.RunError(stale);
}
