/**
 * A line with its line end, one character a byte: what is no UTF-8 and which line ends there are is kept. The
 * last line of a file may have no end.
 */
export type ByteLine = string;

export interface DiffLine {
  readonly side: 'both' | 'old' | 'new';
  readonly text: ByteLine;
}

export interface Hunk {
  /** As it is written, `@@ -3,6 +3,7 @@ class A:`. */
  readonly header: string;
  /** Lines of the old file before it. */
  readonly oldIndex: number;
  /** Lines of the new file before it. */
  readonly newIndex: number;
  readonly lines: readonly DiffLine[];
}

/** The hunks of one file, in its order. */
export type ExactDiff = readonly Hunk[];

export const hunkFaults = [
  'already contained',
  'moved',
  'line ends differ',
  'lines differ',
  'end of file differs',
] as const;

/** Why a hunk does not stand where it says, to the byte. */
export interface HunkFault {
  readonly name: (typeof hunkFaults)[number];
  /** Counted from 1. */
  readonly hunk: number;
  /** Of the file, counted from 1: the first that differs. */
  readonly line: number;
  /** What differs, at most five of it; undefined: no line is there. */
  readonly differing: readonly {
    readonly line: number;
    readonly wanted: string | undefined;
    readonly found: string | undefined;
  }[];
  /** All of the above for people. */
  readonly message: string;
}

export type Applied =
  | { readonly bytes: Uint8Array; readonly fault?: never }
  | { readonly fault: HunkFault; readonly bytes?: never };

/**
 * The file after the diff. Every hunk has to stand at its own line with all of its lines: no fuzz, no offset.
 * Text is taken as UTF-8.
 */
export function applyExactly(base: Uint8Array | string, diff: ExactDiff): Applied {
  const file = linesOf(byteText(base));
  const result: (readonly ByteLine[])[] = [];
  let taken = 0;
  for (const [index, hunk] of diff.entries()) {
    const fault = faultAt(file, hunk, index + 1);
    if (fault !== undefined) return { fault };
    const kept = file.slice(taken, hunk.oldIndex);
    const changed = sideOf(hunk, 'new');
    result.push(kept, changed);
    taken = hunk.oldIndex + sideOf(hunk, 'old').length;
    const isAfterOpenLine = changed.length > 0 && hasNoEnd(kept.at(-1));
    if (isAfterOpenLine || (taken < file.length && hasNoEnd(changed.at(-1)))) {
      return { fault: endOfFileFault(hunk, index + 1, taken) };
    }
  }
  result.push(file.slice(taken));
  return { bytes: Buffer.from(result.flat().join(''), 'latin1') };
}

/** Whether the file is what the diff makes of another one. Of a hunk that leaves no line nothing could be seen. */
export function isContained(file: Uint8Array | string, diff: ExactDiff): boolean {
  const leavesLines = diff.every((hunk) => sideOf(hunk, 'new').length > 0);
  return leavesLines && applyExactly(file, reversed(diff)).fault === undefined;
}

/** The diff that takes this one back. */
export function reversed(diff: ExactDiff): ExactDiff {
  const opposite = { both: 'both', old: 'new', new: 'old' } as const;
  return diff.map(({ header, oldIndex, newIndex, lines }) => ({
    header,
    oldIndex: newIndex,
    newIndex: oldIndex,
    lines: lines.map(({ side, text }) => ({ side: opposite[side], text })),
  }));
}

export function sideOf(hunk: Hunk, side: 'old' | 'new'): readonly ByteLine[] {
  return hunk.lines.filter((line) => line.side === 'both' || line.side === side).map(({ text }) => text);
}

/** One character a byte. */
export function byteText(content: Uint8Array | string): string {
  return Buffer.from(content as Uint8Array).toString('latin1');
}

export function linesOf(text: string): readonly ByteLine[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function faultAt(file: readonly ByteLine[], hunk: Hunk, number: number): HunkFault | undefined {
  const old = sideOf(hunk, 'old');
  if (standsAt(file, hunk.oldIndex, old)) return undefined;
  const differing = old
    .map((wanted, index) => ({ line: hunk.oldIndex + index + 1, wanted, found: file[hunk.oldIndex + index] }))
    .filter(({ wanted, found }) => wanted !== found);
  const line = differing[0]?.line ?? file.length + 1;
  const shown = differing.slice(0, 5).map(({ line, wanted, found }) => ({
    line,
    wanted: readable(wanted),
    found: found === undefined ? undefined : readable(found),
  }));
  const fault = (name: HunkFault['name'], what: string): HunkFault => ({
    name,
    hunk: number,
    line,
    differing: shown,
    message: `hunk ${number} (${headerText(hunk)}) ${what}: ${[
      ...shown.map(differenceText),
      ...(differing.length === 0 ? [`the file has ${file.length} lines`] : []),
      ...(differing.length > shown.length ? [`${differing.length - shown.length} lines more`] : []),
    ].join('; ')}`,
  });

  const changed = sideOf(hunk, 'new');
  if (changed.length > 0 && [hunk.newIndex, hunk.oldIndex].some((at) => standsAt(file, at, changed))) {
    return fault('already contained', 'is in the file already');
  }
  const places = placesOf(file, old);
  if (places.length > 0) {
    const where = places.slice(0, 3).map((place) => place + 1);
    const elsewhere = `line ${where.join(' and ')}${places.length > 3 ? ' and further ones' : ''}`;
    return fault('moved', `was made for line ${hunk.oldIndex + 1}, its lines stand at ${elsewhere}`);
  }
  const plain = (lines: readonly ByteLine[]) => lines.map((text) => text.replace(/\r?\n?$/, ''));
  const there = file.slice(hunk.oldIndex, hunk.oldIndex + old.length);
  if (old.length === there.length && standsAt(plain(there), 0, plain(old))) {
    return fault('line ends differ', 'has the words of the file with other line ends');
  }
  return fault('lines differ', `does not stand at line ${hunk.oldIndex + 1}`);
}

function endOfFileFault(hunk: Hunk, number: number, line: number): HunkFault {
  const message = `hunk ${number} (${headerText(hunk)}) does not agree with the file on where it ends: a line without line end would stand in the middle`;
  return { name: 'end of file differs', hunk: number, line, differing: [], message };
}

function standsAt(file: readonly ByteLine[], at: number, lines: readonly ByteLine[]): boolean {
  return at + lines.length <= file.length && lines.every((text, index) => text === file[at + index]);
}

function placesOf(file: readonly ByteLine[], lines: readonly ByteLine[]): readonly number[] {
  if (lines.length === 0) return [];
  return file.flatMap((_, at) => (standsAt(file, at, lines) ? [at] : []));
}

function hasNoEnd(text: ByteLine | undefined): boolean {
  return text !== undefined && !text.endsWith('\n');
}

function differenceText({ line, wanted, found }: HunkFault['differing'][number]): string {
  const is = found === undefined ? 'is not there' : `is ${found}`;
  return `line ${line} ${is}, the patch has ${wanted}`;
}

/** In quotes, as UTF-8 where it is; line ends are shown where they are not the plain one. */
function readable(text: ByteLine): string {
  const shown = Buffer.from(text.replace(/(?<!\r)\n$/, ''), 'latin1').toString('utf8');
  const quoted = JSON.stringify(shown.length > 120 ? `${shown.slice(0, 117)}…` : shown);
  return hasNoEnd(text) ? `${quoted} without line end` : quoted;
}

function headerText({ header }: Hunk): string {
  return Buffer.from(header, 'latin1').toString('utf8');
}
