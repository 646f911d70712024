import { isUtf8 } from 'node:buffer';
import { posix } from 'node:path';
import { byteText, type DiffLine, type ExactDiff, type Hunk } from './exact-diff.ts';
import { shorten } from './problems.ts';

/** Lines above a diff that say what it changes. */
export interface PatchHeader {
  /** Absolute path of the Python file inside the image. */
  readonly target: string;
  /** Of the target before the diff. */
  readonly baseSha256: string;
  /** Of the target after it. */
  readonly patchedSha256: string;
  /** Python expression that holds in the module with the patch, and not without it. */
  readonly marker?: string;
  /** Patches that this one takes the place of, by their path below `patches/`. */
  readonly supersedes: readonly string[];
}

export interface PatchFile {
  readonly header: PatchHeader;
  readonly diff: ExactDiff;
}

export interface PatchFault {
  /** Short and lasting, e.g. `rename`: for tests and reports. */
  readonly name: keyof typeof remedies;
  /** Of the patch file, counted from 1; undefined: of the whole. */
  readonly line: number | undefined;
  readonly limit: string;
  readonly remedy: string;
}

const anew = 'make the diff anew with slot patch new, diff -u or git diff';
const ofContent = 'a patch changes the lines of one file of the image and nothing else: leave this part out';
const ofPath =
  'name the file as the image has it, e.g. a/vllm/v1/core/x.py and b/vllm/v1/core/x.py for a target that ends so';

const remedies = {
  'byte order mark': 'save the file without it',
  'line ends':
    'keep the file out of conversions of line ends (core.autocrlf, mail): write it with plain ones',
  encoding:
    'save the file as UTF-8; a line of another encoding can neither be changed nor be context of a change',
  header:
    'add the lines "Target: <absolute path in the image>", "Base-SHA256: …" and "Patched-SHA256: …" above the diff',
  'no diff': anew,
  'pseudo-hunk': anew,
  'hunk without file': `put the lines "--- a/…" and "+++ b/…" above the hunk, or ${anew}`,
  'wrong counts': `do not edit a hunk by hand: ${anew}`,
  'wrong line numbers': `do not edit a hunk by hand: ${anew}`,
  'changes nothing': anew,
  'end of file': anew,
  'cut off': `copy the whole file, or ${anew}`,
  'absolute path': ofPath,
  'path outside': ofPath,
  'quoted path': ofPath,
  'other file': ofPath,
  'two files': 'write a patch for each file',
  rename: ofContent,
  copy: ofContent,
  delete: ofContent,
  'new file': ofContent,
  mode: ofContent,
  binary: ofContent,
} as const;

export type ParsedPatch =
  | { readonly patch: PatchFile; readonly faults?: never }
  | { readonly faults: readonly PatchFault[]; readonly patch?: never };

/**
 * Reads a patch: lines that say what it changes, and one unified diff of one file. Taken are the forms of
 * `git diff` (with and without prefix), `diff -u` and `git format-patch`; all else is refused by its own name.
 */
export function parsePatchFile(content: Uint8Array | string): ParsedPatch {
  const reader = new PatchReader(content);
  reader.readDiff();
  const header = reader.readHeader();
  if (header !== undefined) reader.judgePaths(header.target);
  const { faults } = reader;
  if (header === undefined || faults.length > 0) return { faults };
  return { patch: { header, diff: reader.hunks } };
}

const headerKeys = ['Target', 'Base-SHA256', 'Patched-SHA256', 'Marker', 'Supersedes'] as const;

/** Of a file that can be mounted and stand in a diff without quotes. */
export const targetForm = /^\/(?:(?![:,\\])[!-~])+$/;

const fileHeader = /^(?:---|\+\+\+) ([^\t\n]*)(?:\t[^\n]*)?$/;
const hunkHeader = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(?: [^\n]*)?$/;
/** What git says between a part's first line and its diff, beside what is harmless. */
const gitFaults: readonly (readonly [RegExp, PatchFault['name']])[] = [
  [/^(?:rename (?:from|to) )/, 'rename'],
  [/^(?:copy (?:from|to) )/, 'copy'],
  [/^deleted file mode /, 'delete'],
  [/^new file mode /, 'new file'],
  // A link or a submodule has a mode of its own.
  [/^(?:(?:old|new) mode |index \S+ (?!100[0-7]{3}$)\d+$)/, 'mode'],
  [/^Only in \S+: \S+$/, 'two files'],
  [/^(?:GIT binary patch|(?:Binary f|F)iles .* differ)/, 'binary'],
];

interface Part {
  readonly line: number;
  /** Of the lines `---` and `+++`; undefined: not there. */
  names: readonly [string, string] | undefined;
}

class PatchReader {
  readonly faults: PatchFault[] = [];
  readonly hunks: Hunk[] = [];
  readonly #lines: readonly string[];
  readonly #parts: Part[] = [];
  /** Index of the line that is read next. */
  #next = 0;
  #isEndedByLine: boolean;

  constructor(content: Uint8Array | string) {
    const text = byteText(content);
    if (typeof content !== 'string' && !isUtf8(content)) {
      this.#fault('encoding', text.split('\n').findIndex(isNoUtf8) + 1, 'must be UTF-8');
    }
    if (text.startsWith('\xef\xbb\xbf')) {
      this.#fault('byte order mark', 1, 'must not begin with a byte order mark');
    }
    this.#isEndedByLine = text.endsWith('\n');
    this.#lines = (this.#isEndedByLine ? text.slice(0, -1) : text).split('\n');
  }

  #fault(name: PatchFault['name'], line: number | undefined, limit: string): void {
    if (this.faults.some((fault) => fault.name === name)) return;
    const where = line === undefined ? '' : ` (line ${line})`;
    this.faults.push({ name, line, limit: `${limit}${where}`, remedy: remedies[name] });
  }

  readDiff(): void {
    let isSigned = false;
    while (this.#next < this.#lines.length) {
      const line = this.#lines[this.#next] ?? '';
      const number = this.#next + 1;
      const isFileHeader = line.startsWith('--- ') && this.#lines[this.#next + 1]?.startsWith('+++ ');
      if (line.startsWith('diff --git ')) {
        this.#parts.push({ line: number, names: undefined });
        this.#next += 1;
      } else if (isFileHeader) {
        this.#readFileHeader(line, this.#lines[this.#next + 1] ?? '');
      } else if (line.startsWith('@@')) {
        this.#readHunk(line);
      } else {
        if (this.hunks.length > 0 && !isSigned) {
          // The signature below a mail's patch: what follows it is no diff.
          if (/^-- ?$/.test(line)) isSigned = true;
          else if (/^[ +\\-]/.test(line)) {
            this.#fault('wrong counts', number, 'must have as many lines in a hunk as its header counts');
          }
        }
        this.#judgeGitLine(line, number);
        this.#next += 1;
      }
    }
    this.#judgeWhole();
  }

  #readFileHeader(old: string, changed: string): void {
    const number = this.#next + 1;
    this.#next += 2;
    if (old.endsWith('\r') || changed.endsWith('\r')) {
      this.#fault('line ends', number, 'must have plain line ends outside of the hunks, it has CRLF');
    }
    const names = [old, changed].map((line) => fileHeader.exec(line.replace(/\r$/, ''))?.[1]?.trim() ?? '');
    const [oldName = '', newName = ''] = names;
    if (oldName === '/dev/null') this.#fault('new file', number, 'must not make a file');
    if (newName === '/dev/null') this.#fault('delete', number + 1, 'must not delete a file');
    const part = this.#parts.at(-1);
    if (part !== undefined && part.names === undefined) part.names = [oldName, newName];
    else this.#parts.push({ line: number, names: [oldName, newName] });
  }

  #judgeGitLine(line: string, number: number): void {
    if (this.#parts.length === 0 && !/^(?:GIT binary|Binary files)/.test(line)) return;
    const [, name] = gitFaults.find(([form]) => form.test(line)) ?? [];
    if (name !== undefined) this.#fault(name, number, `must be a change of lines: ${JSON.stringify(line)}`);
  }

  #readHunk(header: string): void {
    const number = this.#next + 1;
    this.#next += 1;
    const found = hunkHeader.exec(header);
    if (found === null) {
      this.#fault(
        'pseudo-hunk',
        number,
        `must have hunks with line numbers and counts, not ${quote(header)}`,
      );
      return;
    }
    if (this.#parts.at(-1)?.names === undefined) {
      this.#fault('hunk without file', number, 'must name its file above its hunks');
    }
    const [oldStart = 0, oldCount = 1, newStart = 0, newCount = 1] = found
      .slice(1)
      .map((digits) => (digits === undefined ? undefined : Number(digits)));
    const lines = this.#readHunkLines(number, oldCount, newCount);
    if (lines === undefined) return;
    // A range without lines is given by the line before it.
    const hunk: Hunk = {
      header: header.replace(/\r$/, ''),
      oldIndex: oldCount === 0 ? oldStart : oldStart - 1,
      newIndex: newCount === 0 ? newStart : newStart - 1,
      lines,
    };
    this.#judgeHunk(hunk, number);
    this.hunks.push(hunk);
  }

  #readHunkLines(header: number, oldCount: number, newCount: number): readonly DiffLine[] | undefined {
    const lines: DiffLine[] = [];
    const left = { old: oldCount, new: newCount };
    const sides = { ' ': 'both', '': 'both', '-': 'old', '+': 'new' } as const;
    for (;;) {
      const line = this.#lines[this.#next];
      if (line?.startsWith('\\')) {
        const last = lines.pop();
        if (last === undefined) break;
        lines.push({ ...last, text: last.text.replace(/\n$/, '') });
        this.#next += 1;
        continue;
      }
      if (left.old === 0 && left.new === 0) return lines;
      const side = sides[(line?.[0] ?? '') as keyof typeof sides];
      if (line === undefined || side === undefined || this.#isSignature()) break;
      if (side !== 'new') left.old -= 1;
      if (side !== 'old') left.new -= 1;
      if (left.old < 0 || left.new < 0) break;
      if (this.#next === this.#lines.length - 1 && !this.#isEndedByLine) {
        this.#fault('cut off', this.#next + 1, 'must not end in the middle of a line');
      }
      // A blank line of context may have lost its blank.
      lines.push({ side, text: `${line.slice(1)}\n` });
      this.#next += 1;
    }
    const counts = `${oldCount} lines before and ${newCount} after`;
    this.#fault('wrong counts', header, `must have as many lines in a hunk as its header counts, ${counts}`);
    return undefined;
  }

  /** A mail's last lines, which a hunk with a wrong count would take for a removed line. */
  #isSignature(): boolean {
    const [line, version, ...rest] = this.#lines.slice(this.#next, this.#next + 5);
    return line === '-- ' && /^\d+\.\d[\w.-]*$/.test(version ?? '') && rest.every((after) => after === '');
  }

  #judgeHunk(hunk: Hunk, number: number): void {
    const counted = (lines: readonly DiffLine[], side: 'old' | 'new'): readonly DiffLine[] =>
      lines.filter((line) => line.side === 'both' || line.side === side);
    if (hunk.lines.every(({ side }) => side === 'both')) {
      this.#fault('changes nothing', number, 'must change something in every hunk');
    }
    for (const side of ['old', 'new'] as const) {
      const inner = counted(hunk.lines, side).slice(0, -1);
      if (inner.some(({ text }) => !text.endsWith('\n'))) {
        this.#fault(
          'end of file',
          number,
          'must not say "No newline at end of file" in the middle of a hunk',
        );
      }
    }
    const before = this.hunks.at(-1);
    const oldEnd = before === undefined ? 0 : before.oldIndex + counted(before.lines, 'old').length;
    const newEnd = before === undefined ? 0 : before.newIndex + counted(before.lines, 'new').length;
    if (hunk.oldIndex < oldEnd || hunk.oldIndex - oldEnd !== hunk.newIndex - newEnd) {
      const limit = `must give line numbers that follow from the hunks before: ${quote(hunk.header)}`;
      this.#fault('wrong line numbers', number, limit);
    }
  }

  #judgeWhole(): void {
    const [, second] = this.#parts;
    if (second !== undefined) this.#fault('two files', second.line, 'must be the diff of one file');
    if (this.hunks.length > 0 || this.faults.length > 0) return;
    const isContextDiff = this.#lines.some((line) => /^\*{15}/.test(line));
    const what = isContextDiff ? 'it is a context diff' : 'it is prose';
    this.#fault('no diff', undefined, `must be a unified diff with at least one hunk: ${what}`);
  }

  /** Undefined: a line is missing, is there twice or is not of its form; that is among the faults then. */
  readHeader(): PatchHeader | undefined {
    const end = this.#parts[0] === undefined ? this.#lines.length : this.#parts[0].line - 1;
    const above = this.#lines.slice(0, end).map((line) => Buffer.from(line, 'latin1').toString('utf8'));
    const valuesOf = (key: string): readonly string[] =>
      above.filter((line) => line.startsWith(`${key}:`)).map((line) => line.slice(key.length + 1));
    const line = (key: string, form: RegExp, isWanted: boolean): string | undefined => {
      const [value, second] = valuesOf(key);
      if (value?.endsWith('\r')) {
        this.#fault('line ends', undefined, 'must have plain line ends outside of the hunks, it has CRLF');
      }
      if (second !== undefined) this.#fault('header', undefined, `must have one line "${key}:"`);
      const read = value?.trim();
      if (read === undefined) {
        if (isWanted) {
          this.#fault('header', undefined, `must say above its diff what it changes: "${key}:" is missing`);
        }
      } else if (!form.test(read)) {
        this.#fault('header', undefined, `must have another value in its line "${key}:" than ${quote(read)}`);
      } else return read;
      return undefined;
    };
    const target = line('Target', targetForm, true);
    const baseSha256 = line('Base-SHA256', /^[0-9a-f]{64}$/, true);
    const patchedSha256 = line('Patched-SHA256', /^[0-9a-f]{64}$/, true);
    const marker = line('Marker', /\S/, false);
    const supersedes = valuesOf('Supersedes').map((value) => value.trim());
    const unplain = supersedes.find((name) => !/^(?!patches\/|\.|\/)[^\s,]+$/.test(name));
    if (unplain !== undefined) {
      this.#fault(
        'header',
        undefined,
        `must name one patch by its path below patches/ in each line "Supersedes:", not ${quote(unplain)}`,
      );
    }
    for (const key of headerKeys) {
      const like = above.find(
        (line) => !line.startsWith(`${key}:`) && new RegExp(`^\\s*${key}\\s*:`, 'i').test(line),
      );
      if (like !== undefined) {
        this.#fault('header', undefined, `must have the line ${quote(like)} begin with "${key}:"`);
      }
    }
    if (target !== undefined && (posix.normalize(target) !== target || !target.endsWith('.py'))) {
      this.#fault(
        'header',
        undefined,
        `must have a Python file of the image as Target, not ${quote(target)}`,
      );
      return undefined;
    }
    if (target === undefined || baseSha256 === undefined || patchedSha256 === undefined) return undefined;
    if (baseSha256 === patchedSha256) {
      this.#fault('header', undefined, 'must have different hashes in Base-SHA256 and Patched-SHA256');
    }
    return { target, baseSha256, patchedSha256, ...(marker !== undefined && { marker }), supersedes };
  }

  /** Names of the diff are compared with the target where there are any. */
  judgePaths(target: string): void {
    for (const [index, written] of (this.#parts[0]?.names ?? []).entries()) {
      const line = this.#parts[0]?.line;
      if (written === '/dev/null') continue;
      // As `diff -u x.py.orig x.py` names what it compares.
      const name = index === 0 ? written.replace(/\.orig$/, '') : written;
      if (name.startsWith('"')) {
        this.#fault('quoted path', line, `must change ${target}: ${quote(name)} is in quotes`);
      } else if (name.startsWith('/')) {
        this.#fault('absolute path', line, `must name its file by a relative path, not ${quote(name)}`);
      } else if (name.split('/').includes('..')) {
        this.#fault('path outside', line, `must name its file without "..", not ${quote(name)}`);
      } else if (!spellingsOf(name).some((spelling) => `/${target}`.endsWith(`/${spelling}`))) {
        this.#fault('other file', line, `must change ${target}: it names ${name === '' ? 'no file' : name}`);
      }
    }
  }
}

/**
 * The path as it is, and without its first folder: `a/` and `b/` of git, or the two trees that `diff -ru`
 * compared. Of the latter more than a file's name must be left, or any file of that name would do.
 */
function spellingsOf(name: string): readonly string[] {
  const plain = name.replace(/^(?:\.\/)+/, '');
  const below = plain.slice(plain.indexOf('/') + 1);
  return /^[abciow]\//.test(plain) || below.includes('/') ? [plain, below] : [plain];
}

/** One character a byte. */
function isNoUtf8(line: string): boolean {
  return !isUtf8(Buffer.from(line, 'latin1'));
}

function quote(text: string): string {
  return JSON.stringify(shorten(text));
}
