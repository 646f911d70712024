import { join } from 'node:path';
import { experimentsFolder } from '../../components/stack-files.ts';
import { stacksIn } from '../../components/stack-list.ts';
import { ConfigurationError } from '../../shape/configuration.ts';
import type { ImageFile } from '../../shape/image-files.ts';
import { optionsFor } from '../../shape/operator-supplied.ts';
import { type PatchFile, parsePatchFile, patchHashesFile } from '../../shape/patches.ts';
import { sha256 } from '../../shape/release.ts';
import { UsageError } from '../usage.ts';
import { askForFiles } from './ask.ts';
import { type PatchFolder, type PatchWrite, readPatchFolder, writePatches } from './folder.ts';
import { type Judgement, judge, type Placed } from './hunks.ts';
import { Refusal, toldAsExitCode } from './refusal.ts';
import { type PatchedShape, patchedShape, requireKnown } from './shapes.ts';
import { notesOf, patchFileOf } from './text.ts';

export interface RebaseOptions {
  /** `sha256:…` of the shape's repository; undefined: the digest that the shape pins. */
  readonly digest: string | undefined;
  /** Whether patches that stand elsewhere in their file are written anew. */
  readonly write: boolean;
}

/** What becomes of a patch on another image. */
interface Fate {
  readonly name: string;
  readonly text: string;
  /** `settled`: nothing is to be done; `to write`: `--write` does it; `by hand`: only a person can. */
  readonly kind: 'settled' | 'to write' | 'by hand';
  readonly write?: PatchWrite;
}

/**
 * Tries all patches of a shape on another image of its repository, which the host pulls while what serves goes on, and
 * says of each what becomes of it. Nothing is written unless that is asked for.
 *
 * @returns 1 where a patch is not fit for that image
 */
export function rebase(folder: string, stack: string, options: RebaseOptions): Promise<number> {
  return toldAsExitCode(() => tryAll(folder, stack, options));
}

async function tryAll(folder: string, stack: string, { digest, write }: RebaseOptions): Promise<number> {
  if (digest !== undefined && !/^sha256:[0-9a-f]{64}$/.test(digest)) {
    throw new UsageError(`${digest}: a digest is sha256: and 64 lower-case hexadecimal digits`);
  }
  const shape = patchedShape(folder, stack);
  requireKnown(digest === undefined ? shape : withoutDigest(shape));
  if (shape.patches.length === 0) throw new UsageError(`${shape.file} names no patches`);
  const image = digest === undefined ? shape.image : `${shape.repository}@${digest}`;
  const patches = readPatchFolder(folder);
  const files = await filesOfImage(shape, image, patches);

  const fates = fatesOf(shape, patches, files);
  process.stdout.write(`${stack} on ${image}\n`);
  for (const { name, text } of fates)
    process.stdout.write(`  ${name}: ${text.replaceAll('\n', '\n      ')}\n`);
  const writes = fates.flatMap((fate) => fate.write ?? []);
  if (write && writes.length > 0) {
    writePatches(folder, writes);
    for (const { name } of writes) process.stdout.write(`patches/${name} is written anew and recorded\n`);
    for (const line of othersThatName(folder, shape, image, writes)) process.stdout.write(`${line}\n`);
  } else if (writes.length > 0) {
    process.stdout.write(
      `nothing was written; read the lines above, then: slot patch rebase ${stack}${digest === undefined ? '' : ` ${digest}`} --write\n`,
    );
  }
  const isFit = fates.every(({ kind }) => kind === 'settled' || (write && kind === 'to write'));
  if (isFit && image !== shape.image) {
    process.stdout.write(
      `to serve it: pulumi config set --path slot:shape.engine.image.digest ${digest} ${optionsFor(shape.file)}\n`,
    );
  }
  return isFit ? 0 : 1;
}

function withoutDigest(shape: PatchedShape): PatchedShape {
  return { ...shape, unknown: shape.unknown.filter(({ key }) => !key.endsWith('.image.digest')) };
}

async function filesOfImage(
  { host, patches }: PatchedShape,
  image: string,
  { files }: PatchFolder,
): Promise<readonly ImageFile[]> {
  const targets = new Map<string, string>();
  for (const name of patches) {
    const header = headerOf(files.get(name));
    if (header !== undefined && !targets.has(header.target)) targets.set(header.target, header.baseSha256);
  }
  const wanted = [...targets].map(([path, hash]) => ({ path, sha256: hash }));
  const say = (text: string): void => void process.stderr.write(text);
  const answer = await askForFiles(host, { images: [{ image, pull: true, files: wanted }] }, say);
  const told = answer.kind === 'answered' ? answer.images.get(image) : undefined;
  if (told?.kind === 'read') return told.files;
  if (answer.kind === 'not asked') throw new Refusal(answer.reason);
  throw new Refusal(`${image}: ${told?.reason ?? `${host.name} says nothing of it`}`);
}

function headerOf(content: Uint8Array | undefined): PatchFile['header'] | undefined {
  return content === undefined ? undefined : parsePatchFile(content).patch?.header;
}

/** A file of the new image as far as the patches before have brought it. */
interface Reached {
  readonly target: string;
  readonly bytes: Uint8Array;
}

function fatesOf(
  { patches, unknown }: PatchedShape,
  { files, recorded }: PatchFolder,
  image: readonly ImageFile[],
): readonly Fate[] {
  const reached = new Map<string, Reached | { readonly waitsFor: string }>();
  /** It may change any file. */
  let unread: string | undefined;
  return patches.map((name): Fate => {
    const byHand = (text: string): Fate => ({ name, text, kind: 'by hand' });
    const content = files.get(name);
    if (content === undefined) {
      const isDraft = unknown.length > 0;
      unread ??= name;
      return byHand(`${isDraft ? 'not supplied yet' : 'missing'}: put the diff into patches/`);
    }
    const { patch, faults = [] } = parsePatchFile(content);
    if (patch === undefined) {
      unread ??= name;
      return byHand(faults.map(({ limit, remedy }) => `${limit}\n${remedy}`).join('\n'));
    }
    const { target } = patch.header;
    if (recorded.get(name) !== sha256(content)) {
      reached.set(target, { waitsFor: name });
      return byHand(`not as patches/${patchHashesFile} records it: slot patch check says why`);
    }
    const before = reached.get(target);
    if (before !== undefined && 'waitsFor' in before) {
      return byHand(`not tried: ${before.waitsFor} changes the same file before it`);
    }
    const start = before ?? startOf(patch, image);
    if (typeof start === 'string') {
      reached.set(target, { waitsFor: name });
      return byHand(start);
    }
    const judgement = judge(start.bytes, patch);
    if (unread !== undefined && judgement.kind !== 'applies') {
      reached.set(target, { waitsFor: unread });
      return byHand(
        `not tried: ${unread} comes before it and cannot be read, so it may change the same file`,
      );
    }
    const after = bytesAfter(start, judgement);
    reached.set(target, after === undefined ? { waitsFor: name } : { target: start.target, bytes: after });
    return fateOf(name, content, patch, start, judgement);
  });
}

/** The file of the image that a patch changes first, wherever it lies now; or why there is none. */
function startOf(patch: PatchFile, image: readonly ImageFile[]): Reached | string {
  const { target, baseSha256 } = patch.header;
  const file = image.find(({ path }) => path === target);
  if (file === undefined) return `${target} was not asked for`;
  if (file.kind === 'file') return { target, bytes: Buffer.from(file.content, 'base64') };
  if (file.kind === 'not regular') return `${target} is ${file.what} there, not a regular file`;
  const candidates = file.elsewhere.map(
    ({ path, content }): Reached => ({
      target: path,
      bytes: Buffer.from(content, 'base64'),
    }),
  );
  const same = candidates.filter(({ bytes }) => sha256(bytes) === baseSha256);
  const fitting = candidates.filter(({ bytes }) => judge(bytes, patch).kind !== 'conflicts');
  const [only, ...further] = same.length > 0 ? same : fitting;
  if (only !== undefined && further.length === 0) return only;
  const places = (only === undefined ? candidates : [only, ...further]).slice(0, 4).map((one) => one.target);
  if (only !== undefined)
    return `moved: ${target} is gone, and the patch fits ${places.join(' and ')}: say which`;
  return places.length === 0
    ? `gone: ${target} is not there, nor is its content in its package`
    : `gone: ${target} is not there, and the patch fits no file of its name: ${places.join(', ')}`;
}

function bytesAfter(start: Reached, judgement: Judgement): Uint8Array | undefined {
  switch (judgement.kind) {
    case 'applies':
    case 'drifted':
      return judgement.bytes;
    case 'contained':
      return start.bytes;
    default:
      return undefined;
  }
}

function fateOf(
  name: string,
  content: Buffer,
  { header }: PatchFile,
  { target, bytes: base }: Reached,
  judgement: Judgement,
): Fate {
  const moved = target === header.target ? '' : `moved: ${header.target} is ${target} there; `;
  const anew = (patched: Uint8Array): PatchWrite => ({
    name,
    content: patchFileOf({ target, base, patched, notes: notesOf(content) }),
    replaces: content,
  });
  switch (judgement.kind) {
    case 'applies':
      return moved === ''
        ? { name, text: `applies as it is to ${target}`, kind: 'settled' }
        : { name, text: `${moved}it applies as it is`, kind: 'to write', write: anew(judgement.bytes) };
    case 'drifted':
      return {
        name,
        text: `${moved}applies to a changed file, sha256 ${sha256(base)}\n${judgement.places.map(placeText).join('\n')}`,
        kind: 'to write',
        write: anew(judgement.bytes),
      };
    case 'contained':
      return {
        name,
        text: `${moved}already contained in ${target}: take the patch out of the shape`,
        kind: 'by hand',
      };
    case 'other result':
      return {
        name,
        text: `conflicts: on its own base it makes a file with sha256 ${judgement.found}, its Patched-SHA256 is ${header.patchedSha256}`,
        kind: 'by hand',
      };
    case 'conflicts':
      return { name, text: `${moved}conflicts: ${judgement.reasons.join('\n')}`, kind: 'by hand' };
  }
}

function placeText({ hunk, from, to, below }: Placed): string {
  const offset = to - from;
  const lines = Math.abs(offset) === 1 ? '1 line' : `${Math.abs(offset)} lines`;
  const how = offset === 0 ? 'at its line' : `${lines} further ${offset > 0 ? 'down' : 'up'}`;
  return `hunk ${hunk}: line ${to}, ${how}${below === '' ? '' : `, below ${JSON.stringify(below)}`}`;
}

/** Shapes that name a rewritten patch and pin another image, on which it does not apply any more. */
function othersThatName(
  folder: string,
  shape: PatchedShape,
  image: string,
  writes: readonly PatchWrite[],
): readonly string[] {
  const stacks = [...stacksIn(folder, 'shape'), ...stacksIn(join(folder, experimentsFolder), 'shape')];
  return [...new Set(stacks)].flatMap((stack) => {
    const other = shapeOrNone(folder, stack);
    if (other === undefined || stack === shape.stack || other.image === image) return [];
    const named = writes.filter(({ name }) => other.patches.includes(name)).map(({ name }) => name);
    return named.length === 0 ? [] : [`${stack} names ${named.join(', ')} too and pins another image`];
  });
}

function shapeOrNone(folder: string, stack: string): PatchedShape | undefined {
  try {
    return patchedShape(folder, stack);
  } catch (error) {
    if (error instanceof ConfigurationError) return undefined;
    throw error;
  }
}
