import { isUtf8 } from 'node:buffer';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path/posix';
import * as z from 'zod';
import { optionsFor } from '../../shape/operator-supplied.ts';
import { type PatchFile, parsePatchFile, patchHashesFile, targetForm } from '../../shape/patches.ts';
import { sha256, shortId } from '../../shape/release.ts';
import { UsageError } from '../usage.ts';
import { askForFiles } from './ask.ts';
import { absentText } from './check.ts';
import { compiled } from './compile.ts';
import { type PatchFolder, readPatchFolder, writePatches, writeSynced } from './folder.ts';
import { judge } from './hunks.ts';
import { Refusal, refuseOnFileError, toldAsExitCode } from './refusal.ts';
import { type PatchedShape, patchedShape, requireKnown } from './shapes.ts';
import { patchFileOf } from './text.ts';

/** Where copies are edited, below the project's git-ignored folder. */
const workFolders = '.slot/patches';
const recordFile = 'begun.json';
const notesFile = 'about.txt';
const originalFolder = 'original';

const begunSchema = z.strictObject({
  stack: z.string(),
  target: z.string(),
  image: z.string(),
  /** Of the file that is edited, before the edit. */
  baseSha256: z.string(),
});
type Begun = z.infer<typeof begunSchema>;

/**
 * Starts a patch: lays a copy of the image's file out for editing. Called again after the edit, it writes the patch and
 * records its hash.
 *
 * @returns 1 where the image's file or the edit will not do, which is said
 */
export async function newPatch(
  folder: string,
  stack: string,
  target: string,
  wantedName: string,
): Promise<number> {
  const name = patchName(wantedName);
  if (!targetForm.test(target) || !target.endsWith('.py') || normalize(target) !== target) {
    throw new UsageError(`${target}: name the absolute path of a Python file inside the image`);
  }
  const shape = patchedShape(folder, stack);
  requireKnown(shape);
  const patches = readPatchFolder(folder);
  if (patches.files.has(name)) {
    throw new UsageError(
      `patches/${name} is there already and is not written over: choose another name, or remove it first`,
    );
  }
  const work: Work = { folder, shape, target, name, place: join(folder, workFolders, stem(name)) };
  return toldAsExitCode(async () => {
    if (existsSync(work.place)) await finish(work, patches);
    else await begin(work, patches);
    return 0;
  });
}

interface Work {
  readonly folder: string;
  readonly shape: PatchedShape;
  readonly target: string;
  /** Of the patch file. */
  readonly name: string;
  /** Its work folder. */
  readonly place: string;
}

function patchName(wanted: string): string {
  const bare = stem(wanted);
  if (/^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9])?$/.test(bare) && !bare.includes('..')) {
    return `${bare}.patch`;
  }
  throw new UsageError(
    `${JSON.stringify(wanted)} cannot be the name of a patch: letters, digits, _ . - and no folder, e.g. glm53-fix-01`,
  );
}

function stem(name: string): string {
  return name.replace(/\.patch$/, '');
}

async function begin(work: Work, patches: PatchFolder): Promise<void> {
  const { shape, target, name, place } = work;
  const pristine = await pristineFile(work);
  const { base, earlier } = afterEarlierPatches(pristine, work, patches);
  const begun: Begun = {
    stack: shape.stack,
    target,
    image: shape.image,
    baseSha256: sha256(base),
  };
  refuseOnFileError(() => layOut(place, base, begun));
  const origin = earlier.length === 0 ? `as ${shape.image} has it` : `after ${earlier.join(', ')}`;
  process.stdout.write(
    [
      `${target} ${origin}: sha256 ${sha256(base)}`,
      `1. edit ${join(place, basename(target))}`,
      `2. say why in ${join(place, notesFile)}, in your own words`,
      `3. run the same command again: it writes patches/${name}`,
      `To give it up: rm -r ${place}`,
      '',
    ].join('\n'),
  );
}

function layOut(place: string, base: Uint8Array, begun: Begun): void {
  const above = dirname(place);
  const file = basename(begun.target);
  mkdirSync(above, { recursive: true });
  const unfinished = mkdtempSync(join(above, `.${basename(place)}-`));
  try {
    mkdirSync(join(unfinished, originalFolder));
    writeSynced(join(unfinished, originalFolder, file), base);
    writeSynced(join(unfinished, file), base);
    writeSynced(join(unfinished, notesFile), emptyNotes);
    writeSynced(join(unfinished, recordFile), `${JSON.stringify(begun, null, 2)}\n`);
    renameSync(unfinished, place);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') throw new Refusal(`${place} was begun by another call`);
    throw error;
  }
}

const emptyNotes = `Why: 
# What fails without the patch, and where that was measured: in as many lines as it takes, "Why:" or not. Lines with #
# and lines without a value are left out.
# Marker: a Python expression that holds in the patched module and not in the image's, e.g. PATCHED == 1. It is asked
# of the module that the running engine imports.
Marker: 
# Supersedes: another patch, whose place this one takes.
Supersedes: 
`;

async function pristineFile({ shape, target }: Work): Promise<Uint8Array> {
  const { image, host } = shape;
  const request = { images: [{ image, pull: false, files: [{ path: target }] }] };
  const answer = await askForFiles(host, request, () => undefined);
  if (answer.kind === 'not asked') throw new Refusal(answer.reason);
  const told = answer.images.get(image);
  if (told?.kind !== 'read') {
    const reason = told?.reason ?? 'not told of';
    throw new Refusal(`${image}: ${reason}; slot preflight ${shape.stack} pulls it`);
  }
  const [file] = told.files;
  if (file === undefined) throw new Refusal(`${host.name} tells nothing of ${target}`);
  if (file.kind === 'absent') throw new Refusal(absentText(target, file));
  if (file.kind === 'not regular') {
    throw new Refusal(`${target} in the image is ${file.what}, not a regular file`);
  }
  return Buffer.from(file.content, 'base64');
}

/** What the shape's patches on the same file, before this one in its list, make of it. */
function afterEarlierPatches(
  pristine: Uint8Array,
  { shape, target, name }: Work,
  { files }: PatchFolder,
): { readonly base: Uint8Array; readonly earlier: readonly string[] } {
  const own = shape.patches.indexOf(name);
  const before = own === -1 ? shape.patches : shape.patches.slice(0, own);
  const earlier: string[] = [];
  let base = pristine;
  for (const other of before) {
    const content = files.get(other);
    if (content === undefined) {
      process.stderr.write(
        `patches/${other} is not there: if it changes ${target} too, this patch will not fit behind it\n`,
      );
      continue;
    }
    const { patch, faults = [] } = parsePatchFile(content);
    if (patch === undefined) {
      throw new Refusal(`${other} comes before, and ${faults.map(({ limit }) => limit).join('; ')}`);
    }
    if (patch.header.target !== target) continue;
    const judgement = judge(base, patch);
    if (judgement.kind !== 'applies') {
      throw new Refusal(`${other} comes before and does not apply: slot patch check ${shape.stack} says why`);
    }
    base = judgement.bytes;
    earlier.push(other);
  }
  return { base, earlier };
}

async function finish(work: Work, patches: PatchFolder): Promise<void> {
  const { folder, shape, target, name, place } = work;
  requireSame(work, begunIn(place));
  const base = readFileSync(join(place, originalFolder, basename(target)));
  const edited = readEdited(work, base);
  const notes = notesIn(place);
  const python = await compiled(shape, target, edited);
  if (python.kind === 'does not compile') {
    throw new Refusal(`${join(place, basename(target))} is no Python that compiles: ${python.reason}`);
  }
  if (python.kind === 'not known') {
    process.stderr.write(`not tried whether it compiles: no python3 here, and ${python.reason}\n`);
  }
  const content = patchFileOf({ target, base, patched: edited, notes });
  const { patch, faults = [] } = parsePatchFile(content);
  if (faults.some((fault) => fault.name === 'encoding')) {
    throw new Refusal(
      `${join(place, basename(target))}: a changed line, or one beside it, is not UTF-8 in the image: a patch cannot carry it`,
    );
  }
  if (patch === undefined) {
    throw new Refusal(
      faults.map(({ limit, remedy }) => `${join(place, notesFile)}: ${limit}\n    ${remedy}`).join('\n'),
    );
  }
  requireResult(patch, base, edited);
  writePatches(folder, [{ name, content, replaces: undefined }]);
  rmSync(place, { recursive: true, force: true });
  process.stdout.write(
    [
      `patches/${name}: ${patch.diff.length === 1 ? '1 hunk' : `${patch.diff.length} hunks`} of ${target}`,
      `patches/${patchHashesFile} records it: ${shortId(sha256(content))}…`,
      ...howToName(work, patches),
      '',
    ].join('\n'),
  );
}

function begunIn(place: string): Begun {
  const path = join(place, recordFile);
  try {
    return begunSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    throw new UsageError(`${path}: ${(error as Error).message}; to begin anew: rm -r ${place}`);
  }
}

function requireSame({ shape, target, place }: Work, begun: Begun): void {
  const wanted = { stack: shape.stack, target, image: shape.image };
  for (const key of ['stack', 'target', 'image'] as const) {
    if (begun[key] === wanted[key]) continue;
    throw new UsageError(
      `${place} was begun for the ${key} ${begun[key]}, not ${wanted[key]}; to begin anew: rm -r ${place}`,
    );
  }
}

function readEdited({ target, place }: Work, base: Uint8Array): Buffer {
  const path = join(place, basename(target));
  let edited: Buffer;
  try {
    edited = readFileSync(path);
  } catch (error) {
    throw new Refusal(`${path}: ${(error as Error).message}; to begin anew: rm -r ${place}`);
  }
  if (edited.equals(base)) throw new Refusal(`${path} is as the image has it: edit it first`);
  if (edited.includes(0) || (isUtf8(base) && !isUtf8(edited))) {
    throw new Refusal(`${path} is no text: save it as UTF-8, without NUL`);
  }
  const plain = (content: Uint8Array) => Buffer.from(content).toString('latin1').replaceAll('\r\n', '\n');
  if (plain(edited) === plain(base)) {
    throw new Refusal(`${path} differs from the image in its line ends alone: set the editor to keep them`);
  }
  const endsOf = (content: Uint8Array) => {
    const lines = Buffer.from(content).toString('latin1').split('\n').slice(0, -1);
    const crlf = lines.filter((line) => line.endsWith('\r')).length;
    return crlf === 0 ? 'plain ones' : crlf === lines.length ? 'CRLF' : 'both kinds';
  };
  if (endsOf(edited) !== endsOf(base) && Buffer.from(base).includes(10)) {
    throw new Refusal(
      `${path} has other line ends than the image (${endsOf(edited)} instead of ${endsOf(base)}): set the editor to keep them`,
    );
  }
  return edited;
}

function notesIn(place: string): readonly string[] {
  const path = join(place, notesFile);
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.trimEnd())
    .filter((line) => line !== '' && !line.startsWith('#') && !/^(?:Why|Marker|Supersedes):$/.test(line));
  if (lines.every((line) => /^(?:Marker|Supersedes):/.test(line))) {
    throw new Refusal(
      `${path} does not say why yet: what fails without the patch, and where that was measured`,
    );
  }
  return lines;
}

/** What is written must be read by the host as it was meant. */
function requireResult(patch: PatchFile, base: Uint8Array, edited: Uint8Array): void {
  const judgement = judge(base, patch);
  const isSame = judgement.kind === 'applies' && Buffer.from(judgement.bytes).equals(edited);
  if (!isSame) throw new Error(`the diff that was made does not make the edited file: ${judgement.kind}`);
}

function howToName({ shape, name }: Work, { files }: PatchFolder): readonly string[] {
  const { stack, file, patches } = shape;
  if (patches.includes(name)) return [`${file} names it already`];
  const absent = patches.filter((other) => !files.has(other));
  return [
    `add it to slot:shape.patches in ${file}:`,
    `      - ${name}`,
    `or: pulumi config set --path 'slot:shape.patches[${patches.length}]' ${name} ${optionsFor(file)}`,
    `then: slot patch check ${stack}`,
    ...(absent.length === 0 ? [] : [`not there yet: ${absent.join(', ')}`]),
  ];
}
