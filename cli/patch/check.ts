import { join } from 'node:path';
import { experimentsFolder } from '../../components/stack-files.ts';
import { stacksIn } from '../../components/stack-list.ts';
import { ConfigurationError } from '../../shape/configuration.ts';
import type { ImageFile } from '../../shape/image-files.ts';
import { type PatchFile, parsePatchFile, patchedFilesOf, patchHashesFile } from '../../shape/patches.ts';
import { sha256 } from '../../shape/release.ts';
import { UsageError } from '../usage.ts';
import { askForFiles, type HostAnswer } from './ask.ts';
import { type PatchFolder, readPatchFolder } from './folder.ts';
import { judge } from './hunks.ts';
import { type PatchedShape, patchedShape } from './shapes.ts';

/** What is said of a patch in a shape. */
interface Verdict {
  readonly patch: string;
  readonly text: string;
  /** FAULT: the shape would be refused for it; open: it could not be checked whole. */
  readonly state: 'ok' | 'open' | 'FAULT';
}

/**
 * Says of every patch of shapes whether it applies to the file of the pinned image. Each host is asked once; where it
 * does not answer, all is checked that needs no image, and what was not checked is said.
 *
 * @param stacks default: all shapes of the folder and its experiments
 * @returns 1 where a patch would be refused; a host that does not answer, an image that is not there, and what the
 *   operator has not supplied yet are no faults of a patch
 */
export async function check(folder: string, stacks: readonly string[]): Promise<number> {
  const all = [...stacksIn(folder, 'shape'), ...stacksIn(join(folder, experimentsFolder), 'shape')];
  const wanted = stacks.length === 0 ? [...new Set(all)] : stacks;
  if (wanted.length === 0) throw new UsageError(`${folder}: no file Pulumi.<stack>.yaml has slot:shape`);
  const patches = readPatchFolder(folder);
  const shapes: PatchedShape[] = [];
  let [faults, open] = [0, 0];
  const tell = (title: string, verdicts: readonly Verdict[]): void => {
    print(title, verdicts);
    faults += verdicts.filter(({ state }) => state === 'FAULT').length;
    open += verdicts.filter(({ state }) => state === 'open').length;
  };
  for (const stack of wanted) {
    try {
      shapes.push(patchedShape(folder, stack));
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      faults += 1;
      process.stderr.write(`${error.message}\n`);
    }
  }
  const patched = shapes.filter((shape) => shape.patches.length > 0);
  const seen = await imagesOf(patched, patches);
  const unseen: string[] = [];
  for (const shape of patched) {
    const image = seen.get(shape) ?? { unseen: 'its host was not asked' };
    const files = 'unseen' in image ? undefined : image;
    tell(
      shape.isImageKnown ? `${shape.stack}: ${shape.image}` : shape.stack,
      judgeShape(shape, patches, files),
    );
    if ('unseen' in image) unseen.push(`${shape.stack} was not checked against its image: ${image.unseen}`);
  }
  if (stacks.length === 0) {
    const named = new Set(shapes.flatMap((shape) => shape.patches));
    tell('patches/', judgeFolder(patches, named));
    const without = shapes.filter((shape) => shape.patches.length === 0).map(({ stack }) => stack);
    if (without.length > 0) process.stdout.write(`without patches: ${without.join(', ')}\n`);
  }
  for (const line of unseen) process.stdout.write(`${line}\n`);
  const found = faults === 0 ? 'no fault found' : `${faults} ${faults === 1 ? 'fault' : 'faults'}`;
  const left = open === 0 ? '' : `; not checked to the end: ${open}, marked open`;
  process.stdout.write(`${found}${left}\n`);
  return faults === 0 ? 0 : 1;
}

function print(title: string, verdicts: readonly Verdict[]): void {
  if (verdicts.length > 0) process.stdout.write(`${title}\n`);
  for (const { patch, text, state } of verdicts) {
    process.stdout.write(`  ${state.padEnd(5)} ${patch}: ${text.replaceAll('\n', '\n        ')}\n`);
  }
}

/** The files of an image, or why they are not known. */
type SeenImage = readonly ImageFile[] | { readonly unseen: string };

async function imagesOf(
  shapes: readonly PatchedShape[],
  patches: PatchFolder,
): Promise<ReadonlyMap<PatchedShape, SeenImage>> {
  const seen = new Map<PatchedShape, SeenImage>();
  for (const shape of shapes.filter(({ unknown }) => unknown.length > 0)) {
    const missing = shape.unknown.map(({ key }) => key).join(', ');
    seen.set(shape, { unseen: `not supplied yet: ${missing}` });
  }
  const known = shapes.filter((shape) => !seen.has(shape));
  const byHost = Map.groupBy(known, ({ host }) => JSON.stringify(host));
  const asking = [...byHost.values()].map(async (ofHost) => {
    const [{ host }] = ofHost as [PatchedShape, ...PatchedShape[]];
    const images = [...Map.groupBy(ofHost, ({ image }) => image)].map(([image, ofImage]) => ({
      image,
      pull: false,
      files: filesOf(ofImage, patches),
    }));
    const answer = await askForFiles(host, { images }, () => undefined);
    for (const shape of ofHost) seen.set(shape, seenIn(answer, shape));
  });
  await Promise.all(asking);
  return seen;
}

function seenIn(answer: HostAnswer, { stack, image, host }: PatchedShape): SeenImage {
  if (answer.kind === 'not asked') return { unseen: answer.reason };
  const told = answer.images.get(image);
  if (told === undefined) return { unseen: `${host.name} says nothing of it` };
  return told.kind === 'read' ? told.files : { unseen: `${told.reason}; slot preflight ${stack} pulls it` };
}

/** Targets of all readable patches of shapes, each once, with the hash that the first patch on it was made for. */
function filesOf(
  shapes: readonly PatchedShape[],
  { files }: PatchFolder,
): { path: string; sha256: string }[] {
  const targets = new Map<string, string>();
  for (const name of shapes.flatMap((shape) => shape.patches)) {
    const content = files.get(name);
    const header = content === undefined ? undefined : parsePatchFile(content).patch?.header;
    if (header !== undefined && !targets.has(header.target)) targets.set(header.target, header.baseSha256);
  }
  return [...targets].map(([path, hash]) => ({ path, sha256: hash }));
}

function judgeShape(
  shape: PatchedShape,
  { files, recorded }: PatchFolder,
  image: readonly ImageFile[] | undefined,
): readonly Verdict[] {
  const there = shape.patches.filter((name) => files.has(name));
  const { problems } = patchedFilesOf(there, textsOf(files), shape.file, recorded);
  const chain: Chain = new Map();
  return shape.patches.map((name): Verdict => {
    const content = files.get(name);
    if (content === undefined) {
      // The record names diffs that only the operator has; a shape that is complete cannot go without them.
      const isDraft = shape.unknown.length > 0;
      const text = `${isDraft ? 'not supplied yet' : 'missing'}: put the diff into patches/`;
      return { patch: name, text, state: isDraft ? 'open' : 'FAULT' };
    }
    const own = problems
      .filter(({ value }) => value === name)
      .map(({ limit, remedy }) => `${limit}\n${remedy}`);
    const { patch } = parsePatchFile(content);
    const onImage = patch && image && onItsImage(name, patch, image, chain);
    const faults = [...own, ...(onImage?.isFault ? [onImage.text] : [])];
    if (faults.length > 0) return { patch: name, text: faults.join('\n'), state: 'FAULT' };
    if (onImage === undefined) return { patch: name, text: 'well-formed', state: 'open' };
    return { patch: name, text: onImage.text, state: 'ok' };
  });
}

type Chain = Map<string, { readonly bytes: Uint8Array } | { readonly waitsFor: string }>;

function onItsImage(
  name: string,
  patch: PatchFile,
  image: readonly ImageFile[],
  chain: Chain,
): { readonly text: string; readonly isFault: boolean } {
  const { target, baseSha256, patchedSha256 } = patch.header;
  const fault = (text: string) => {
    if (!chain.has(target)) chain.set(target, { waitsFor: name });
    return { text, isFault: true };
  };
  const earlier = chain.get(target);
  if (earlier !== undefined && 'waitsFor' in earlier) {
    return { text: `not tried: ${earlier.waitsFor} changes the same file before it`, isFault: true };
  }
  const file = image.find(({ path }) => path === target);
  if (file === undefined) return fault(`${target} was not asked for`);
  if (file.kind === 'absent') return fault(absentText(target, file));
  if (file.kind === 'not regular') return fault(`${target} in the image is ${file.what}, not a regular file`);
  const base = earlier?.bytes ?? Buffer.from(file.content, 'base64');
  const found = sha256(base);
  const judgement = judge(base, patch);
  const wrongBase = `wrong base: it was made for sha256 ${baseSha256}, ${earlier === undefined ? 'the image has' : 'the patches before it make'} ${found}`;
  const after =
    judgement.kind === 'applies' ? judgement.bytes : judgement.kind === 'contained' ? base : undefined;
  chain.set(target, after === undefined ? { waitsFor: name } : { bytes: after });
  switch (judgement.kind) {
    case 'applies':
      return { text: `applies to ${target}`, isFault: false };
    case 'contained':
      return fault(`already contained in ${target} of the image: take the patch out of the shape`);
    case 'other result':
      return fault(
        `conflicts: it makes a file with sha256 ${judgement.found}, its Patched-SHA256 is ${patchedSha256}`,
      );
    case 'drifted':
      return fault(`${wrongBase}\nits lines are all there: slot patch rebase shows where`);
    case 'conflicts': {
      const reasons = judgement.reasons.join('\n');
      return fault(found === baseSha256 ? `conflicts: ${reasons}` : `${wrongBase}\nconflicts: ${reasons}`);
    }
  }
}

export function absentText(target: string, { elsewhere }: ImageFile & { kind: 'absent' }): string {
  const places = elsewhere.slice(0, 3).map(({ path }) => path);
  const hint = places.length === 0 ? '' : `\nof that name or content there: ${places.join(', ')}`;
  return `${target} is not in the image${hint}`;
}

/** What no shape names, and what is recorded and not there. */
function judgeFolder({ files, recorded }: PatchFolder, named: ReadonlySet<string>): readonly Verdict[] {
  const loose = [...files.keys()].filter((name) => /\.(?:patch|diff)$/.test(name) && !named.has(name)).sort();
  const judged = loose.map((patch): Verdict => {
    const { problems } = patchedFilesOf([patch], textsOf(files), patch, recorded);
    const faults = problems.map(({ limit, remedy }) => `${limit}\n${remedy}`);
    return faults.length > 0
      ? { patch, text: faults.join('\n'), state: 'FAULT' }
      : { patch, text: 'well-formed; no shape names it', state: 'open' };
  });
  const gone = [...recorded.keys()].filter((name) => !files.has(name));
  const text = `is recorded in patches/${patchHashesFile} and not there: bring it back, or take its line out`;
  return [...judged, ...gone.map((patch): Verdict => ({ patch, text, state: 'FAULT' }))];
}

function textsOf(files: PatchFolder['files']): ReadonlyMap<string, string> {
  return new Map([...files].map(([name, content]) => [name, content.toString('utf8')]));
}
