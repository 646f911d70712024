import { posix } from 'node:path';
import type { ImageFile } from '../shape/image-files.ts';
import type { Finding } from '../shape/inspection.ts';
import { namesOf } from '../shape/names.ts';
import {
  applyExactly,
  type ExactDiff,
  isContained,
  type PatchedFile,
  type PatchFile,
  parsePatchFile,
} from '../shape/patches.ts';
import { type Release, sha256, shortId } from '../shape/release.ts';
import { imageFiles } from './image-file.ts';
import type { Outside } from './outside.ts';
import { imageState } from './podman.ts';

/** Larger than any source file that Python would read in a reasonable time. */
const mostFileBytes = 16 * 1024 ** 2;

/**
 * Applies the patches to the pristine files of the pinned image, to the byte, and keeps the results under the names
 * of their hashes. Throws with the patches that do not fit; nothing of the image is changed, and no file that is there
 * is written again.
 */
export async function applyPatches(outside: Outside, release: Release): Promise<void> {
  if (release.patches.length === 0) return;
  const { results, faults } = await patchedBytes(outside, release);
  if (faults.length > 0) throw new Error(faults.join('; '));
  for (const { patched, bytes } of results) {
    const path = patchedPath(release, patched);
    if ((await outside.kindOf(path)) !== 'absent') {
      const fault = await patchedFileFault(outside, release, patched);
      if (fault !== undefined) throw new Error(`${fault}; remove it and try again: it is made anew then`);
      continue;
    }
    await outside.makeFolder(posix.dirname(path));
    await removeUnfinished(outside, path);
    await outside.writeDurably(path, bytes);
  }
}

/** What a killed program left of a file that it was writing, and not what another writes at this moment. */
async function removeUnfinished(outside: Outside, path: string): Promise<void> {
  const folder = posix.dirname(path);
  for (const name of await outside.list(folder)) {
    if (!/^\.[0-9a-f]{8}$/.test(name.slice(posix.basename(path).length))) continue;
    const left = `${folder}/${name}`;
    const status = await outside.statusOf(left);
    const seconds = outside.now().getTime() / 1000 - Number(status?.modified ?? Number.NaN) / 1e9;
    if (seconds > 60) await outside.removeDurably(left);
  }
}

/** Why a file that a unit mounts is not what it was made as; undefined: it is. */
export async function patchedFileFault(
  outside: Outside,
  release: Pick<Release, 'service' | 'shape'>,
  patched: PatchedFile,
): Promise<string | undefined> {
  const path = patchedPath(release, patched);
  const kind = await outside.kindOf(path);
  if (kind !== 'file')
    return `patched file ${path} of ${release.shape} is ${kind === 'absent' ? 'gone' : `a ${kind}`}`;
  const actual = await hashOf(outside, path);
  return actual === patched.patchedSha256
    ? undefined
    : `patched file ${path} has sha256 ${actual ?? 'none'}: it was damaged or changed on this host`;
}

interface PatchedBytes {
  readonly patched: PatchedFile;
  readonly bytes: Uint8Array;
}

/** What does not fit the image that is pinned, patch by patch; nothing is said of an image that is not there yet. */
export async function patchFindings(outside: Outside, release: Release | undefined): Promise<Finding[]> {
  if (release === undefined || release.patches.length === 0) return [];
  if ((await imageState(outside, release.image)) !== 'present') return [];
  try {
    const { faults } = await patchedBytes(outside, release);
    return faults.map((message) => ({ severity: 'refuse', subject: 'patches', message }));
  } catch (error) {
    return [{ severity: 'warn', subject: 'patches', message: (error as Error).message }];
  }
}

/** The patched files, and why others could not be made. */
async function patchedBytes(
  outside: Outside,
  { image, patches }: Release,
): Promise<{ readonly results: readonly PatchedBytes[]; readonly faults: readonly string[] }> {
  const files = patches.map(({ target, baseSha256 }) => ({ path: target, sha256: baseSha256 }));
  const [answer] = await imageFiles(outside, { images: [{ image, pull: false, files }] }, () => undefined);
  if (answer?.kind !== 'read') throw new Error(`${image} cannot be read: ${answer?.reason ?? 'no answer'}`);
  const results: PatchedBytes[] = [];
  const faults: string[] = [];
  for (const patched of patches) {
    const found = answer.files.find(({ path }) => path === patched.target);
    try {
      results.push({ patched, bytes: appliedTo(found, patched) });
    } catch (error) {
      faults.push((error as Error).message);
    }
  }
  return { results, faults };
}

function appliedTo(found: ImageFile | undefined, patched: PatchedFile): Uint8Array {
  const { target, baseSha256, patchedSha256, diffs } = patched;
  const names = diffs.map(({ name }) => name).join(', ');
  if (found?.kind !== 'file') throw new Error(`${names}: ${target} ${absence(found, baseSha256)}`);
  const read = diffs.map(({ name, text }) => ({ name, ...patchIn(name, text) }));
  const base = new Uint8Array(Buffer.from(found.content, 'base64'));
  if (sha256(base) !== baseSha256) {
    throw new Error(
      `${names}: ${target} in the image has sha256 ${shortId(sha256(base))}…, the patch was made for ${shortId(baseSha256)}…: ${driftOf(base, read)}`,
    );
  }
  let bytes: Uint8Array = base;
  for (const { name, diff, header } of read) {
    const applied = applyExactly(bytes, diff);
    if (applied.fault !== undefined) throw new Error(`${name} on ${target}: ${applied.fault.message}`);
    bytes = applied.bytes;
    const isLast = name === diffs.at(-1)?.name;
    const wanted = isLast ? patchedSha256 : header.patchedSha256;
    if (sha256(bytes) !== wanted) {
      throw new Error(
        `${name}: ${target} has sha256 ${sha256(bytes)} after it, Patched-SHA256 says ${wanted}`,
      );
    }
  }
  return bytes;
}

function patchIn(name: string, text: string): PatchFile {
  const { patch, faults } = parsePatchFile(text);
  if (patch === undefined) throw new Error(`${name} ${faults.map(({ limit }) => limit).join(', ')}`);
  return patch;
}

function absence(found: ImageFile | undefined, baseSha256: string): string {
  if (found === undefined) return 'was not looked for';
  if (found.kind === 'not regular') return `is no regular file in the image: ${found.what}`;
  if (found.kind === 'file') return 'is there';
  const [moved] = found.elsewhere.filter(
    ({ content }) => sha256(Buffer.from(content, 'base64')) === baseSha256,
  );
  if (moved !== undefined)
    return `is not in the image: it moved to ${moved.path}, unchanged; correct Target and paths`;
  const alike = found.elsewhere.map(({ path }) => path).slice(0, 3);
  return alike.length === 0
    ? 'is not in the image, nor a file of its name in its package'
    : `is not in the image; a file of its name is ${alike.join(' and ')}`;
}

/** What became of each diff on a file that is not the one it was made for. */
function driftOf(
  base: Uint8Array,
  diffs: readonly { readonly name: string; readonly diff: ExactDiff }[],
): string {
  let bytes = base;
  const said: string[] = [];
  for (const { name, diff } of diffs) {
    const applied = applyExactly(bytes, diff);
    if (applied.fault === undefined) {
      bytes = applied.bytes;
      said.push(`${name} would stand as it is on this file`);
    } else if (isContained(bytes, diff)) {
      said.push(`${name} is already contained, take it out`);
    } else {
      said.push(`${name}, ${applied.fault.message}`);
    }
  }
  return `${said.join('; ')}; slot patch rebase makes it anew for this image`;
}

/** Where the host keeps a patched file: a release's unit mounts it from there. */
export function patchedPath(
  { service }: Pick<Release, 'service'>,
  { patchedSha256, target }: PatchedFile,
): string {
  return namesOf(service).patchedFile(patchedSha256, target);
}

export async function hashOf(outside: Outside, path: string): Promise<string | undefined> {
  const part = await outside.readPart(path, 0, mostFileBytes);
  return part && sha256(part.bytes);
}
