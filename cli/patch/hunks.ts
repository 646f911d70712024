import {
  applyExactly,
  byteText,
  type ExactDiff,
  type Hunk,
  linesOf,
  reversed,
  sideOf,
} from '../../shape/exact-diff.ts';
import type { PatchFile } from '../../shape/patch-file.ts';
import { sha256 } from '../../shape/release.ts';

/** Where a hunk stands in a file that is not the one it was made for; lines are counted from 1. */
export interface Placed {
  readonly hunk: number;
  readonly from: number;
  readonly to: number;
  /** The line of the class or function above it; empty: there is none. */
  readonly below: string;
}

/** What becomes of a patch on a file. */
export type Judgement =
  /** The file is the declared base, and the patch makes of it what it declares. */
  | { readonly kind: 'applies'; readonly bytes: Uint8Array }
  /** The file is the declared base, but not the declared file comes out. */
  | { readonly kind: 'other result'; readonly found: string }
  /** The file is another one, in which each hunk has one place with all of its lines. */
  | { readonly kind: 'drifted'; readonly bytes: Uint8Array; readonly places: readonly Placed[] }
  /** The file is as the patch would make it. */
  | { readonly kind: 'contained' }
  | { readonly kind: 'conflicts'; readonly reasons: readonly string[] };

export function judge(file: Uint8Array, { header, diff }: PatchFile): Judgement {
  const found = sha256(file);
  if (found === header.patchedSha256) return { kind: 'contained' };
  if (found !== header.baseSha256) return judgeDrifted(file, diff);
  const { bytes, fault } = applyExactly(file, diff);
  if (fault !== undefined) return { kind: 'conflicts', reasons: [fault.message] };
  const result = sha256(bytes);
  return result === header.patchedSha256
    ? { kind: 'applies', bytes }
    : { kind: 'other result', found: result };
}

/** Looks for each hunk by all of its lines: none is left out, and none may stand in two places. */
function judgeDrifted(file: Uint8Array, diff: ExactDiff): Judgement {
  const lines = linesOf(byteText(file));
  const opposite = reversed(diff);
  const finds = diff.map((hunk, index) => ({
    hunk,
    places: placesOf(lines, hunk),
    result: placesOf(lines, opposite[index] ?? hunk),
  }));
  const isThere = finds.every(({ hunk, places, result: [place, ...further] }) => {
    const isCertain = place !== undefined && further.length === 0 && isBelowItsHeading(lines, hunk, place);
    return places.length === 0 && isCertain;
  });
  if (isThere) {
    return { kind: 'contained' };
  }
  const reasons: string[] = [];
  const moved: Hunk[] = [];
  let shift = 0;
  for (const [index, { hunk, places, result }] of finds.entries()) {
    const [place] = places;
    const reason = reasonAgainst(lines, hunk, index + 1, { places, result }, moved.at(-1));
    if (reason !== undefined) reasons.push(reason);
    if (reason !== undefined || place === undefined) continue;
    moved.push({ ...hunk, oldIndex: place, newIndex: place + shift });
    shift += sideOf(hunk, 'new').length - sideOf(hunk, 'old').length;
  }
  if (reasons.length > 0) return { kind: 'conflicts', reasons };
  const { bytes, fault } = applyExactly(file, moved);
  if (fault !== undefined) return { kind: 'conflicts', reasons: [fault.message] };
  const places = moved.map(({ oldIndex }, index) => ({
    hunk: index + 1,
    from: (diff[index]?.oldIndex ?? 0) + 1,
    to: oldIndex + 1,
    below: Buffer.from(headingsAbove(lines, oldIndex)[0] ?? '', 'latin1').toString('utf8'),
  }));
  return { kind: 'drifted', bytes, places };
}

/** Why a hunk has no place of its own; undefined: it has one. */
function reasonAgainst(
  lines: readonly string[],
  hunk: Hunk,
  number: number,
  { places, result }: { readonly places: readonly number[]; readonly result: readonly number[] },
  before: Hunk | undefined,
): string | undefined {
  const [place, ...further] = places;
  if (place === undefined) {
    if (result.length > 0) return `hunk ${number} is in the file already (line ${lineNumbers(result)})`;
    return sideOf(hunk, 'old').length === 0
      ? `hunk ${number} has no line by which its place could be found`
      : nearestDifference(lines, hunk, number);
  }
  if (further.length > 0) {
    return `hunk ${number} has ${places.length} places, line ${lineNumbers(places)}: none of them is certain`;
  }
  if (result.length > 0) {
    return `hunk ${number} would stand at line ${place + 1}, but what it makes is at line ${lineNumbers(result)} already`;
  }
  const end = before === undefined ? 0 : before.oldIndex + sideOf(before, 'old').length;
  if (place < end) return `hunk ${number} stands at line ${place + 1}, before the hunk that it follows`;
  if (isBelowItsHeading(lines, hunk, place)) return undefined;
  const found = headingsAbove(lines, place)[0] ?? '';
  return `hunk ${number} was made below ${JSON.stringify(headingIn(hunk))}, its lines stand at line ${place + 1} below ${JSON.stringify(found)}`;
}

function isBelowItsHeading(lines: readonly string[], hunk: Hunk, place: number): boolean {
  const heading = headingIn(hunk);
  return heading === '' || headingsAbove(lines, place).some((line) => line.startsWith(heading));
}

function placesOf(lines: readonly string[], hunk: Hunk): readonly number[] {
  const old = sideOf(hunk, 'old');
  if (old.length === 0) return [];
  return lines.flatMap((_, at) => (old.every((text, index) => text === lines[at + index]) ? [at] : []));
}

/** How it differs where most of its lines stand. */
function nearestDifference(lines: readonly string[], hunk: Hunk, number: number): string {
  const old = sideOf(hunk, 'old');
  const equals = (at: number): number =>
    old.reduce((count, text, index) => count + (text === lines[at + index] && text.trim() !== '' ? 1 : 0), 0);
  const best = lines.reduce(
    (found, _, at) => {
      const count = equals(at);
      const isNearer = Math.abs(at - hunk.oldIndex) < Math.abs(found.at - hunk.oldIndex);
      return count > found.count || (count === found.count && isNearer) ? { at, count } : found;
    },
    { at: hunk.oldIndex, count: 0 },
  );
  if (best.count === 0) return `hunk ${number} stands nowhere: none of its lines is in the file`;
  const there = { ...hunk, oldIndex: best.at, newIndex: best.at };
  const { fault } = applyExactly(Buffer.from(lines.join(''), 'latin1'), [there]);
  const differing = fault?.differing ?? [];
  return [
    `hunk ${number} stands nowhere, nearest at line ${best.at + 1}:`,
    ...differing.map(
      ({ line, wanted, found }) =>
        `    line ${line} is ${found ?? 'not there'}, the patch has ${wanted ?? 'no line'}`,
    ),
  ].join('\n');
}

function lineNumbers(places: readonly number[]): string {
  const shown = places.slice(0, 3).map((place) => place + 1);
  return `${shown.join(', ')}${places.length > shown.length ? ', …' : ''}`;
}

/** What git and we write behind the second `@@`, shortened: the class or function that a hunk stands in. */
function headingIn({ header }: Hunk): string {
  return (/^@@[^@]*@@ ?(.*)$/.exec(header)?.[1] ?? '').trim();
}

/** As git finds them by default, and for Python. */
const headings = [/^[A-Za-z_$]/, /^[ \t]*(?:class|(?:async[ \t]+)?def)[ \t]/];

export function headingsAbove(lines: readonly string[], place: number): readonly string[] {
  const above = lines.slice(0, place);
  return headings.flatMap(
    (form) =>
      above
        .findLast((line) => form.test(line))
        ?.slice(0, 80)
        .trim() ?? [],
  );
}
