import { type StructuredPatchHunk, structuredPatch } from 'diff';
import { byteText, linesOf } from '../../shape/exact-diff.ts';
import { sha256 } from '../../shape/release.ts';
import { headingsAbove } from './hunks.ts';

export interface PatchParts {
  /** Absolute path inside the image. */
  readonly target: string;
  readonly base: Uint8Array;
  readonly patched: Uint8Array;
  /** Lines above the diff beside those that this writes: why, marker, evidence. */
  readonly notes: readonly string[];
}

/** Lines above the diff that are computed and never written by hand. */
const computed = /^(?:Target|Base-SHA256|Patched-SHA256):/;

/** A whole patch file: what it changes, the notes, and a unified diff that keeps every byte. */
export function patchFileOf({ target, base, patched, notes }: PatchParts): Buffer {
  const head = [
    `Target: ${target}`,
    `Base-SHA256: ${sha256(base)}`,
    `Patched-SHA256: ${sha256(patched)}`,
    ...notes.filter((line) => !computed.test(line)),
    '',
    '',
  ];
  const [old, changed] = [byteText(base), byteText(patched)];
  const name = pathInDiff(target);
  const { hunks } = structuredPatch(name, name, old, changed, undefined, undefined, { context: 3 });
  const lines = linesOf(old);
  const diff = [`--- a/${name}`, `+++ b/${name}`, ...hunks.flatMap((hunk) => hunkLines(hunk, lines)), ''];
  return Buffer.concat([Buffer.from(head.join('\n')), Buffer.from(diff.join('\n'), 'latin1')]);
}

/** As git does it. */
const mostHeadingCharacters = 80;

function hunkLines(hunk: StructuredPatchHunk, file: readonly string[]): readonly string[] {
  const { oldStart, oldLines, newStart, newLines, lines } = hunk;
  // A range without lines is given by the line before it.
  const range = (start: number, count: number) => `${count === 0 ? start - 1 : start},${count}`;
  const [heading] = headingsAbove(file, oldStart - 1);
  const header = `@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`;
  return [
    heading === undefined ? header : `${header} ${heading.slice(0, mostHeadingCharacters).trim()}`,
    ...lines,
  ];
}

/** The lines above a patch's diff, without those that are computed. */
export function notesOf(patch: Uint8Array): readonly string[] {
  const lines = Buffer.from(patch).toString('utf8').split('\n');
  const end = lines.findIndex(
    (line, index) =>
      line.startsWith('diff --git ') || (line.startsWith('--- ') && lines[index + 1]?.startsWith('+++ ')),
  );
  const above = lines.slice(0, end === -1 ? lines.length : end).filter((line) => !computed.test(line));
  return above.slice(0, above.findLastIndex((line) => line.trim() !== '') + 1);
}

/** As a diff names the file: below its site-packages, else the whole path. */
function pathInDiff(target: string): string {
  return /\/(?:site|dist)-packages\/(.+)$/.exec(target)?.[1] ?? target.slice(1);
}
