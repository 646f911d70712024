import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type EpochNote, staleEpoch, writeEpochNote } from '../../../components/epoch-note.ts';
import { inspection, occupant, release } from './samples.ts';

let root: string;
let note: EpochNote;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'epoch-note-'));
  note = { folder: join(root, '.slot'), stack: 'glm-w4a16', host: '10.77.0.2:22' };
});
afterEach(() => rm(root, { recursive: true, force: true }));

describe('an update after a preview', () => {
  it('goes on when the epoch is the one shown', async () => {
    await writeEpochNote(note, inspection({ epoch: 12 }));
    expect(await staleEpoch(note, inspection({ epoch: 12 }))).toBeUndefined();
  });

  it('stops when somebody moved the epoch, and names both epochs, both occupants and who', async () => {
    await writeEpochNote(note, inspection({ epoch: 12 }));
    const glm = release();
    const live = inspection({
      epoch: 13,
      occupant: occupant(glm),
      changed: 'ann at 2026-11-29T10:00:00Z (cutover of glm-w4a16)',
    });
    const reason = await staleEpoch(note, live);
    expect(reason).toMatch(/epoch 12 \(qwen-fp8-mtp4\).*epoch 13 \(glm-w4a16\).*ann.*2026-11-29T10:00:00Z/);
  });

  it('stops as well when the epoch went back, as on a host installed anew', async () => {
    await writeEpochNote(note, inspection({ epoch: 12 }));
    expect(await staleEpoch(note, inspection({ epoch: 0, occupant: null }))).toContain(
      'epoch 0 (empty slot)',
    );
  });

  it('is compared with a preview once: the note is gone afterwards', async () => {
    await writeEpochNote(note, inspection({ epoch: 12 }));
    expect(await staleEpoch(note, inspection({ epoch: 13 }))).toBeDefined();
    expect(await readdir(note.folder)).toEqual([]);
    expect(await staleEpoch(note, inspection({ epoch: 13 }))).toBeUndefined();
  });

  it('goes on without a preview', async () => {
    expect(await staleEpoch(note, inspection())).toBeUndefined();
  });

  it.each([
    ['stack', { stack: 'r9v-q8_0' }],
    ['host', { host: '10.77.0.3:22' }],
  ])('is not compared with the preview of another %s', async (_what, other) => {
    await writeEpochNote({ ...note, ...other }, inspection({ epoch: 12 }));
    expect(await staleEpoch(note, inspection({ epoch: 13 }))).toBeUndefined();
  });

  it('stops at a note that cannot be read, rather than go on unchecked', async () => {
    await writeEpochNote(note, inspection({ epoch: 12 }));
    const [file] = await readdir(note.folder);
    await writeFile(join(note.folder, file ?? ''), '{"epoch": "twelve"}');
    await expect(staleEpoch(note, inspection({ epoch: 12 }))).rejects.toThrow();
  });
});
