import { join } from 'node:path';
import * as pulumi from '@pulumi/pulumi';
import { inspectHost } from '../remote/inspect.ts';
import { type EpochNote, staleEpoch, writeEpochNote } from './epoch-note.ts';
import { intentOf } from './intent.ts';
import type { PlannedShape } from './planned-shape.ts';
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
): Promise<ServedShape> {
  const isPreview = pulumi.runtime.isDryRun();
  // The host's answer takes longer than loading the components.
  const [answer, { ServedShape }] = await Promise.all([
    inspectHost(host, release),
    import('./served-shape.ts'),
  ]);
  const intent = intentOf(answer, release);
  const note: EpochNote = {
    folder: join(projectFolder, '.slot'),
    stack,
    host: `${host.address}:${host.sshPort}`,
  };
  if (isPreview) {
    await pulumi.log.info(reportOf({ host: host.name, answer, intent, wanted: release }));
    if (answer.kind === 'inspected') await writeEpochNote(note, answer.inspection);
  } else if (answer.kind === 'inspected') {
    const stale = await staleEpoch(note, answer.inspection);
    if (stale !== undefined) throw new pulumi.RunError(stale);
  }
  if (intent.kind === 'refused') {
    throw new pulumi.RunError(['refused, nothing was touched', ...intent.reasons].join('\n'));
  }
  if (intent.kind === 'unknown') {
    if (!isPreview) throw new pulumi.RunError(`${intent.reason}\nNothing was touched.`);
    await pulumi.log.warn(intent.reason);
  }
  return new ServedShape(stack, { host, release, claim: intent.claim });
}
