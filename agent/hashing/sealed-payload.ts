import { createHash } from 'node:crypto';
import type { Finding } from '../../shape/inspection.ts';
import { sizeText } from '../../shape/memory/amounts.ts';
import type { ExpectedPayload } from '../../shape/payload-expectation.ts';
import {
  inOrder,
  manifestIdOf,
  type PayloadManifest,
  payloadManifestSchema,
} from '../../shape/payload-manifest.ts';
import type { HubFile, SealedTree } from '../../shape/payload-request.ts';
import { treesOf } from '../../shape/payload-seals.ts';
import { type Release, shortId } from '../../shape/release.ts';
import type { Outside } from '../outside.ts';
import { counted, listed } from '../payload/wording.ts';
import { type HashContext, readInUnit } from './hash-job.ts';
import { HashMemo, isSameFile } from './hash-memo.ts';
import { isHidden, payloadTree, type TreeFile } from './payload-tree.ts';

/** A payload that is not what it claims to be, with everything that was found. */
export class PayloadDiffers extends Error {
  constructor(root: string, differences: readonly string[], remedy: string) {
    const shown = differences.slice(0, mostShown);
    const more = differences.length - shown.length;
    const rest = more > 0 ? [`and ${more} more`] : [];
    super(`${[`${root} is not as it should be:`, ...shown, ...rest].join('\n  ')}\n${remedy}`);
    this.name = 'PayloadDiffers';
  }
}

const mostShown = 20;
const fetchAgain =
  'Fetch these files again, or seal what is there if it is right: npx slot payload seal <stack>';

/**
 * Checks that a payload has the files of its manifest, and that they have the hashes of manifest and record. Names and
 * sizes come first, before any byte is read; what was read since it last changed is not read again.
 *
 * @returns what was found, in one line
 * @throws PayloadDiffers with all files that differ
 */
export async function verifyTree(context: HashContext, tree: SealedTree): Promise<string> {
  const { root, manifest } = tree;
  const files = await payloadTree(context.outside, root);
  const expectations = expectationsOf(tree);
  if (expectations.size === 0) throw new Error(`${root}: nothing says what its files hash to`);
  const misfits = misfitsOf(tree, files, expectations);
  if (misfits.length > 0) throw new PayloadDiffers(root, misfits, fetchAgain);
  const wanted = files.filter(({ name }) => expectations.has(name));
  const found = await hashesOf(context, root, wanted, (name) => expectations.get(name)?.sha256);
  const different = wanted.flatMap(({ name }) => {
    const expected = expectations.get(name)?.sha256 ?? '';
    const actual = found.get(name) ?? '';
    return actual.startsWith(expected) ? [] : [`${name} has sha256 ${actual}, expected ${expected}`];
  });
  if (different.length > 0) throw new PayloadDiffers(root, different, fetchAgain);
  const bytes = wanted.reduce((sum, { status }) => sum + status.size, 0);
  const by = manifest === undefined ? 'on record' : `sealed, manifest ${shortId(manifestIdOf(manifest))}`;
  return `${root}: ${counted(wanted.length, 'file')}, ${sizeText(bytes)}, hashes as ${by}`;
}

/**
 * The manifest of what lies there. What a hub gives a hash for gets that one, and is not read; everything else is read.
 *
 * @throws PayloadDiffers where what lies there cannot be what hub and record speak of
 */
export async function sealTree(context: HashContext, tree: SealedTree): Promise<PayloadManifest> {
  const { root, hub = [], expected } = tree;
  const files = await payloadTree(context.outside, root);
  const misfits = (await Promise.all(hub.map((told) => hubMisfit(context, root, files, told)))).flat();
  if (misfits.length > 0)
    throw new PayloadDiffers(root, misfits, 'Nothing was sealed. Fetch these files again');
  const given = new Map(hub.flatMap(({ name, sha256 }) => (sha256 === undefined ? [] : [[name, sha256]])));
  const unknown = files.filter(({ name }) => !given.has(name));
  const found = await hashesOf(context, root, unknown, () => undefined);
  const manifest = inOrder(
    files.map(({ name, status }) => ({
      name,
      size: status.size,
      sha256: given.get(name) ?? found.get(name) ?? '',
    })),
  );
  const changed = changesBetween(files, await payloadTree(context.outside, root));
  if (changed.length > 0)
    throw new PayloadDiffers(root, changed, 'Nothing was sealed: try again when nobody writes there');
  const missing = recorded(expected).filter(([name]) => !files.some((file) => file.name === name));
  const different = [
    ...missing.map(([name]) => `${name} is missing`),
    ...offRecord(manifest, expected, 'there'),
  ];
  if (different.length === 0) return payloadManifestSchema.parse(manifest);
  throw new PayloadDiffers(
    root,
    different,
    'Nothing was sealed: slot:shape names what is on record (expected)',
  );
}

/** What became of files between two looks: a reading takes its time, and can wait for another one's end. */
function changesBetween(before: readonly TreeFile[], now: readonly TreeFile[]): readonly string[] {
  const later = new Map(now.map((file) => [file.name, file]));
  const earlier = new Set(before.map(({ name }) => name));
  return [
    ...before.flatMap(({ name, status }) => {
      const file = later.get(name);
      if (file !== undefined && isSameFile(status, file.status)) return [];
      return [`${name} was ${file === undefined ? 'taken away' : 'changed'} meanwhile`];
    }),
    ...now.filter(({ name }) => !earlier.has(name)).map(({ name }) => `${name} was added meanwhile`),
  ];
}

/**
 * What a preview can say of a release that asks for hashes: names, sizes, and whether the files were read since they
 * last changed. Reads no byte of them.
 */
export async function sealFindings(
  outside: Outside,
  service: string,
  release: Release,
): Promise<readonly Finding[]> {
  if (release.payload.verify !== 'hashes') return [];
  return Promise.all(
    treesOf(release).map(async (tree): Promise<Finding> => {
      try {
        return await sealFinding(outside, service, tree, release.shape);
      } catch (error) {
        return { severity: 'refuse', subject: 'payload', message: (error as Error).message };
      }
    }),
  );
}

async function sealFinding(
  outside: Outside,
  service: string,
  tree: SealedTree,
  shape: string,
): Promise<Finding> {
  const { root } = tree;
  requireManifest(tree, shape);
  const files = await payloadTree(outside, root);
  const expectations = expectationsOf(tree);
  const misfits = misfitsOf(tree, files, expectations);
  if (misfits.length > 0) {
    const more = misfits.length > 3 ? ` and ${misfits.length - 3} more` : '';
    throw new Error(`${root} is not as sealed: ${misfits.slice(0, 3).join(', ')}${more}`);
  }
  const memo = await HashMemo.open(outside, service, root);
  const unread: TreeFile[] = [];
  const different: string[] = [];
  for (const file of files) {
    const known = memo.sha256Of(file.name, file.status);
    if (known === undefined) unread.push(file);
    else if (known !== expectations.get(file.name)?.sha256) different.push(file.name);
  }
  if (different.length > 0) {
    throw new Error(
      `${root} is not as sealed: other bytes than sealed when they were read last: ${listed(different)}; npx slot payload verify ${shape} reads them again`,
    );
  }
  const bytes = unread.reduce((sum, { status }) => sum + status.size, 0);
  const message =
    unread.length === 0
      ? `${root}: hashes as sealed, nothing was touched since they were taken`
      : `${root}: ${unread.length} of ${files.length} files, ${sizeText(bytes)}, are to be read before the stop; npx slot payload verify ${shape} reads them beforehand`;
  return { severity: 'note', subject: 'payload', message };
}

/** @throws Error that says how to get one */
export function requireManifest({ root, manifest }: SealedTree, shape: string): void {
  if (manifest === undefined) throw new Error(`${root} has no manifest: npx slot payload seal ${shape}`);
}

/** What names and sizes tell. */
function misfitsOf(
  { manifest, expected }: SealedTree,
  files: readonly TreeFile[],
  expectations: ReadonlyMap<string, Expectation>,
): readonly string[] {
  const byName = new Map(files.map((file) => [file.name, file]));
  return [
    ...[...expectations].flatMap(([name, { size }]) => {
      const file = byName.get(name);
      return file === undefined ? [`${name} is missing`] : sizeMisfit(file, size);
    }),
    ...(manifest === undefined ? [] : files)
      .filter(({ name }) => !expectations.has(name))
      .map(({ name }) => `${name} is not in the manifest`),
    ...offRecord(manifest ?? [], expected, 'sealed'),
  ];
}

function sizeMisfit({ name, status }: TreeFile, size: number | undefined): readonly string[] {
  if (size === undefined || size === status.size) return [];
  const difference = Math.abs(status.size - size);
  const how =
    status.size < size ? `${counted(difference, 'byte')} missing` : `${counted(difference, 'byte')} too many`;
  return [`${name} has ${status.size} bytes, expected ${size}: ${how}`];
}

interface Expectation {
  readonly size: number | undefined;
  /** Or how it begins. */
  readonly sha256: string;
}

function expectationsOf({ manifest = [], expected }: SealedTree): ReadonlyMap<string, Expectation> {
  return new Map([
    ...recorded(expected).map(([name, expectation]) => [name, expectation] as const),
    ...manifest.map(({ name, size, sha256 }) => [name, { size, sha256 }] as const),
  ]);
}

function recorded(expected: ExpectedPayload | undefined): readonly (readonly [string, Expectation])[] {
  return Object.entries(expected?.files ?? {}).flatMap(([name, { bytes, sha256 }]) =>
    sha256 === undefined ? [] : [[name, { size: bytes, sha256 }] as const],
  );
}

/** What a manifest says otherwise than the record. */
function offRecord(
  manifest: PayloadManifest,
  expected: ExpectedPayload | undefined,
  where: string,
): readonly string[] {
  return recorded(expected).flatMap(([name, { sha256 }]) => {
    const file = manifest.find((other) => other.name === name);
    if (file === undefined || file.sha256.startsWith(sha256)) return [];
    return [`${name} has sha256 ${file.sha256} ${where}, on record is ${sha256}`];
  });
}

/** More is no file that a hub keeps in git itself. */
const mostGitBytes = 64 * 2 ** 20;

async function hubMisfit(
  { outside }: HashContext,
  root: string,
  files: readonly TreeFile[],
  { name, size, sha256, gitBlob }: HubFile,
): Promise<readonly string[]> {
  const file = files.find((other) => other.name === name);
  // A hub has pages and pictures as well; what it keeps in LFS are weights.
  if (file === undefined) return sha256 === undefined || isHidden(name) ? [] : [`${name} is missing`];
  const misfit = sizeMisfit(file, size);
  if (misfit.length > 0 || gitBlob === undefined || file.status.size > mostGitBytes) return misfit;
  const part = await outside.readPart(`${root}/${name}`, 0, file.status.size);
  const hash = createHash('sha1').update(`blob ${part?.bytes.length ?? 0}\0`);
  const found = hash.update(part?.bytes ?? '').digest('hex');
  return found === gitBlob
    ? []
    : [`${name} is not the hub's: as a blob of git it is ${found}, not ${gitBlob}`];
}

/**
 * SHA-256 of files as they stand, from memory where they were not touched since they were read. A remembered hash that
 * is not the expected one is not believed either: the file is read again before it is refused.
 *
 * @throws PayloadDiffers with the files that could not be read
 */
async function hashesOf(
  context: HashContext,
  root: string,
  files: readonly TreeFile[],
  expectedOf: (name: string) => string | undefined,
): Promise<ReadonlyMap<string, string>> {
  for (;;) {
    const memo = await HashMemo.open(context.outside, context.service, root);
    const known = new Map<string, string>();
    for (const { name, status } of files) {
      const sha256 = memo.sha256Of(name, status);
      if (sha256?.startsWith(expectedOf(name) ?? '') === true) known.set(name, sha256);
    }
    const unknown = files.filter(({ name }) => !known.has(name));
    if (unknown.length === 0) return known;
    if (known.size > 0) await context.say(`${known.size} of ${files.length} files were read before`);
    const wanted = unknown.map(({ name, path }) => ({ name, path, expected: expectedOf(name) }));
    const results = await readInUnit(context, root, wanted);
    if (results === undefined) continue;
    const unread: string[] = [];
    for (const { name } of unknown) {
      const result = results.get(name) ?? { error: 'was not read' };
      if ('sha256' in result) known.set(name, result.sha256);
      else unread.push(`${name}: ${result.error}`);
    }
    if (unread.length === 0) return known;
    throw new PayloadDiffers(
      root,
      unread,
      'What was read is remembered: the same command goes on from there',
    );
  }
}
