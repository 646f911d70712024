import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { intentOf } from '../../../components/intent.ts';
import {
  type PreviewNote,
  staleBecause,
  takePreviewNote,
  writePreviewNote,
} from '../../../components/preview-note.ts';
import type { InspectAnswer } from '../../../remote/inspect.ts';
import type { Inspection } from '../../../shape/inspection.ts';
import { inspection, occupant, qwen, release, transaction } from './samples.ts';

const glm = release();
let root: string;
let note: PreviewNote;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'preview-note-'));
  note = { folder: join(root, '.slot'), stack: 'glm-w4a16', host: '10.77.0.2:22' };
});
afterEach(() => rm(root, { recursive: true, force: true }));

function claimFor(answer: InspectAnswer, wanted = glm) {
  const intent = intentOf(answer, wanted);
  return intent.kind === 'refused' ? undefined : intent.claim;
}

async function preview(seen: Partial<Inspection> | 'silent', wanted = glm, of = note): Promise<void> {
  const answer: InspectAnswer =
    seen === 'silent'
      ? { kind: 'not-set-up', message: 'bare' }
      : { kind: 'inspected', inspection: inspection(seen) };
  const claim = claimFor(answer, wanted);
  if (claim) await writePreviewNote(of, answer, claim);
}

/** Why an update is stopped on a host in this state. */
async function update(seen: Partial<Inspection>, wanted = glm): Promise<string | undefined> {
  const shown = await takePreviewNote(note);
  const live = inspection(seen);
  return shown && staleBecause(shown, live, claimFor({ kind: 'inspected', inspection: live }, wanted));
}

const movedToGlm = { epoch: 13, occupant: occupant(glm), changed: 'ann at 10:00 (cutover of glm-w4a16)' };

describe('an update goes on', () => {
  it('when it would do what the preview showed', async () => {
    await preview({ epoch: 12 });
    expect(await update({ epoch: 12 })).toBeUndefined();
  });

  it('without a preview', async () => {
    expect(await update({})).toBeUndefined();
  });

  it('when the transaction that it would have joined has ended well meanwhile', async () => {
    const running = transaction(glm, { running: true });
    await preview({ epoch: 12, transaction: running });
    const done = { epoch: 13, occupant: occupant(glm, { claim: running.claim }) };
    expect(await update(done)).toBeUndefined();
  });

  it('when the engine that was to be waited for serves meanwhile', async () => {
    await preview({ occupant: occupant(qwen, { state: 'loading' }) }, qwen);
    expect(await update({ occupant: occupant(qwen) }, qwen)).toBeUndefined();
  });

  it('when the engine that is waited for was started again meanwhile', async () => {
    await preview({ occupant: occupant(qwen, { state: 'loading' }) }, qwen);
    const again = { occupant: occupant(qwen, { state: 'loading', invocation: 'beef' }) };
    expect(await update(again, qwen)).toBeUndefined();
  });

  it.each([
    ['stack', { stack: 'r9v-q8_0' }],
    ['host', { host: '10.77.0.3:22' }],
  ])('after the preview of another %s', async (_what, other) => {
    await preview({ epoch: 12 }, glm, { ...note, ...other });
    expect(await update({ epoch: 13 })).toBeUndefined();
  });
});

describe('an update stops', () => {
  it('when somebody moved the slot, and names both epochs, both occupants and who', async () => {
    await preview({ epoch: 12 });
    const moved = { epoch: 13, occupant: occupant(release({ shape: 'r9v-q8_0' })), changed: 'ann at 10:00' };
    expect(await update(moved)).toMatch(
      /epoch 12 \(qwen-fp8-mtp4\).*epoch 13 \(r9v-q8_0\).*moved by ann at 10:00/,
    );
  });

  it('when somebody else did the same meanwhile: it is theirs', async () => {
    await preview({ epoch: 12 });
    expect(await update(movedToGlm)).toContain('moved by ann');
  });

  it('when the epoch went back, as on a host installed anew', async () => {
    await preview({ epoch: 12 });
    expect(await update({ epoch: 0, occupant: null })).toContain('epoch 0 (empty slot)');
  });

  it('when the engine that was to be left alone has crashed since: that would be an outage', async () => {
    await preview({}, qwen);
    const crashed = { occupant: occupant(qwen, { state: 'failed' }) };
    expect(await update(crashed, qwen)).toContain('qwen-fp8-mtp4 (failed');
  });

  it('when the shape was edited since', async () => {
    await preview({});
    expect(await update({}, release({ port: 7771 }))).toMatch(/preview showed ".*now it would be "/);
  });

  it('when the preview had not reached the host', async () => {
    await preview('silent');
    expect(await update({})).toContain('did not reach the host');
  });

  it('when the joined transaction failed meanwhile', async () => {
    await preview({ epoch: 12, transaction: transaction(glm, { running: true }) });
    expect(await update({ epoch: 13, changed: 'dank (failed cutover to glm-w4a16)' })).toContain(
      'failed cutover',
    );
  });

  it('once: the note counts for one update', async () => {
    await preview({ epoch: 12 });
    expect(await update({ epoch: 13 })).toBeDefined();
    expect(await readdir(note.folder)).toEqual([]);
    expect(await update({ epoch: 13 })).toBeUndefined();
  });

  it('at a note that cannot be read, rather than go on unchecked', async () => {
    await preview({ epoch: 12 });
    const [file] = await readdir(note.folder);
    await writeFile(join(note.folder, file ?? ''), '{"claim": 12}');
    await expect(update({ epoch: 12 })).rejects.toThrow(/glm-w4a16@10\.77\.0\.2_22\.json/);
  });
});
