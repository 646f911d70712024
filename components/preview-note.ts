import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { InspectAnswer } from '../remote/inspect.ts';
import type { Inspection } from '../shape/inspection.ts';
import type { Claim } from '../shape/release.ts';

/**
 * `pulumi up` runs the program twice, with a human's answer in between. The preview writes down what it showed;
 * the update takes it and stops if it would now do something else: Pulumi itself does not notice.
 */
export interface PreviewNote {
  /** Folder of the notes, not under version control. */
  readonly folder: string;
  readonly stack: string;
  /** Address and port: a note of one host says nothing about another that a stack was pointed at. */
  readonly host: string;
}

const noteSchema = z.strictObject({
  /** Token of the claim that the preview showed. */
  claim: z.string(),
  /** undefined: the host did not answer. */
  seen: z.strictObject({ epoch: z.int().nonnegative(), occupant: z.string().optional() }).optional(),
});
type Note = z.infer<typeof noteSchema>;

export async function writePreviewNote(
  note: PreviewNote,
  answer: InspectAnswer,
  claim: Claim,
): Promise<void> {
  const shown: Note = {
    claim: claim.token,
    ...(answer.kind === 'inspected' && {
      seen: { epoch: answer.inspection.epoch, occupant: answer.inspection.occupant?.shape },
    }),
  };
  await mkdir(note.folder, { recursive: true });
  await writeFile(pathOf(note), `${JSON.stringify(shown)}\n`);
}

export function forgetPreviewNote(note: PreviewNote): Promise<void> {
  return rm(pathOf(note), { force: true });
}

/**
 * Takes the note away, so that it counts for one update only; undefined: no preview was shown.
 *
 * @throws where the note cannot be read
 */
export async function takePreviewNote(note: PreviewNote): Promise<Note | undefined> {
  const text = await readFile(pathOf(note), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  await forgetPreviewNote(note);
  const parsed = noteSchema.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new Error(`${pathOf(note)}: not the note of a preview; it is removed, preview again`);
}

/**
 * Why an update must not go on after the preview that left the note.
 *
 * @param claim what the update would send; undefined: it is refused anyhow
 * @returns undefined when it would do what was shown
 */
export function staleBecause(shown: Note, live: Inspection, claim: Claim | undefined): string | undefined {
  if (shown.claim === claim?.token) return undefined;
  const advice = 'Nothing was touched; preview again and decide anew';
  if (shown.seen === undefined) return `the preview did not reach the host, the update does. ${advice}`;
  if (shown.seen.epoch !== live.epoch) {
    return (
      `the preview showed epoch ${shown.seen.epoch} (${shown.seen.occupant ?? 'empty slot'}), ` +
      `the host is at epoch ${live.epoch} (${live.occupant?.shape ?? 'empty slot'}), ` +
      `moved by ${live.changed}. ${advice}`
    );
  }
  // What was to be waited for has come by itself: there is nothing left to do.
  if (claim?.token === live.occupant?.claim.token) return undefined;
  return claim && `the preview showed "${shown.claim}", now it would be "${claim.token}". ${advice}`;
}

function pathOf({ folder, stack, host }: PreviewNote): string {
  return join(folder, `${stack}@${host.replaceAll(/[^A-Za-z0-9.-]/g, '_')}.json`);
}
