import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Inspection } from '../shape/inspection.ts';

/**
 * `pulumi up` runs the program twice, with a human's answer in between. The preview writes down what it showed;
 * the update reads it and stops if somebody changed the occupant meanwhile: Pulumi itself does not notice.
 */
export interface EpochNote {
  /** Folder of the notes, not under version control. */
  readonly folder: string;
  readonly stack: string;
  /** Address and port: a note of one host says nothing about another that a stack was pointed at. */
  readonly host: string;
}

const noteSchema = z.strictObject({ epoch: z.int().nonnegative(), occupant: z.string().nullable() });

export async function writeEpochNote(note: EpochNote, inspection: Inspection): Promise<void> {
  await mkdir(note.folder, { recursive: true });
  const shown = { epoch: inspection.epoch, occupant: inspection.occupant?.shape ?? null };
  await writeFile(pathOf(note), `${JSON.stringify(shown)}\n`);
}

/**
 * Takes the note away, so that it counts for one update only.
 * @returns why the update must not go on; undefined when the epoch is the one shown, or no preview was shown
 * (`--skip-preview`; with `--plan` Pulumi compares by itself)
 */
export async function staleEpoch(note: EpochNote, live: Inspection): Promise<string | undefined> {
  const text = await readFile(pathOf(note), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  await rm(pathOf(note), { force: true });
  const shown = noteSchema.parse(JSON.parse(text));
  if (shown.epoch === live.epoch) return undefined;
  return (
    `the preview showed epoch ${shown.epoch} (${shown.occupant ?? 'empty slot'}), ` +
    `the host is at epoch ${live.epoch} (${live.occupant?.shape ?? 'empty slot'}), ` +
    `moved by ${live.changed}. ` +
    'Nothing was touched; preview again and decide anew'
  );
}

function pathOf({ folder, stack, host }: EpochNote): string {
  return join(folder, `${stack}@${host.replaceAll(/[^A-Za-z0-9.-]/g, '_')}.json`);
}
