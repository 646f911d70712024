import { posix } from 'node:path';
import type { ImageAnswer, ImageFile, ImageFilesRequest } from '../shape/image-files.ts';
import { sha256 } from '../shape/release.ts';
import type { Outside } from './outside.ts';
import { imageState } from './podman.ts';

/** A Python file that somebody patches has some 100 KiB. */
const mostFileBytes = 4 * 1024 ** 2;

/** Of what is found elsewhere, for one file; the operator's side takes 64 MiB in all. */
const mostFoundBytes = 8 * 1024 ** 2;

/** As the kernel's own limit. */
const mostLinks = 40;

/** A file for each process that has an image mounted: its content is the image. */
const mountsFolder = '/run/slot-image-mounts';

const pullSeconds = 6 * 3600;
const pullSilenceSeconds = 20;

/**
 * The pristine files of images of root's store, read from each image mounted read-only for that moment. Nothing runs
 * in a container, and what serves goes on.
 *
 * @param say told of a pull, which can take minutes
 */
export async function imageFiles(
  outside: Outside,
  { images }: ImageFilesRequest,
  say: (line: string) => void,
): Promise<ImageAnswer[]> {
  const answers: ImageAnswer[] = [];
  for (const { image, pull: mayPull, files } of images) {
    try {
      if (mayPull) await pull(outside, image, say);
      const state = await imageState(outside, image);
      if (state !== 'present') throw new Error(`${state} on this host`);
      answers.push({ kind: 'read', image, files: await readMounted(outside, image, files) });
    } catch (error) {
      answers.push({ kind: 'not read', image, reason: (error as Error).message });
    }
  }
  return answers;
}

/** Behind everything else that wants processor and disk: an engine may be serving. */
async function pull(outside: Outside, image: string, say: (line: string) => void): Promise<void> {
  if ((await imageState(outside, image)) === 'present') return;
  say(`pulling ${image}`);
  const startedAt = outside.monotonicSeconds();
  const seconds = () => Math.round(outside.monotonicSeconds() - startedAt);
  const beat = setInterval(() => say(`pulling for ${seconds()} s`), pullSilenceSeconds * 1000);
  try {
    const words = ['-n', '19', 'ionice', '-c', 'idle', 'podman', 'pull', image];
    const { exitCode, stderr } = await outside.run('nice', words, {
      timeoutSeconds: pullSeconds,
      onLine: (line) => line.trim() !== '' && say(line.trim()),
    });
    if (exitCode !== 0) throw new Error(`cannot be pulled: ${stderr.trim().split('\n').pop()}`);
    say(`pulled in ${seconds()} s`);
  } finally {
    clearInterval(beat);
  }
}

async function readMounted(
  outside: Outside,
  image: string,
  files: ImageFilesRequest['images'][number]['files'],
): Promise<ImageFile[]> {
  await letGoOfLeftMounts(outside);
  const own = `${mountsFolder}/${process.pid}`;
  await outside.makeFolder(mountsFolder);
  await outside.writeDurably(own, image);
  const mounted = await outside.run('podman', ['image', 'mount', image]);
  const root = mounted.stdout.trim();
  if (mounted.exitCode !== 0 || !root.startsWith('/')) {
    await outside.removeDurably(own);
    throw new Error(`podman image mount: ${mounted.stderr.trim() || 'it says no place'}`);
  }
  try {
    const read: ImageFile[] = [];
    for (const { path, sha256: expected } of files) {
      const found = await fileIn(outside, root, path);
      read.push(found ?? { kind: 'absent', path, elsewhere: await elsewhere(outside, root, path, expected) });
    }
    return read;
  } finally {
    // podman counts the mounts: another's of the same image stays.
    await outside.run('podman', ['image', 'unmount', image]);
    await outside.removeDurably(own);
  }
}

/** podman keeps an image mounted whose reader was killed, and will not remove it. */
async function letGoOfLeftMounts(outside: Outside): Promise<void> {
  for (const process of await outside.list(mountsFolder)) {
    if ((await outside.kindOf(`/proc/${process}`)) !== 'absent') continue;
    const path = `${mountsFolder}/${process}`;
    const image = await outside.readText(path);
    if (image === undefined) continue;
    await outside.removeDurably(path);
    await outside.run('podman', ['image', 'unmount', image]);
  }
}

async function fileIn(outside: Outside, root: string, path: string): Promise<ImageFile | undefined> {
  const place = await placeOf(outside, root, path);
  if (place === undefined) return undefined;
  if ('linkTo' in place) return { kind: 'not regular', path, what: `a link to ${place.linkTo}` };
  const kind = await outside.kindOf(`${root}${place.path}`);
  if (kind === 'absent') return undefined;
  if (kind !== 'file') {
    return { kind: 'not regular', path, what: kind === 'folder' ? 'a folder' : 'no file' };
  }
  const part = await outside.readPart(`${root}${place.path}`, 0, mostFileBytes);
  if (part === undefined) return undefined;
  if (part.fileBytes > mostFileBytes) {
    const what = `too large for a patch: ${part.fileBytes} bytes, at most ${mostFileBytes}`;
    return { kind: 'not regular', path, what };
  }
  return { kind: 'file', path, content: base64(part.bytes) };
}

/** Where a path leads inside the image: its links are followed there, and none leads out of it. */
async function placeOf(
  outside: Outside,
  root: string,
  path: string,
): Promise<{ readonly path: string } | { readonly linkTo: string } | undefined> {
  let passed = '/';
  let ahead = path.split('/');
  for (let links = 0; links <= mostLinks; ) {
    const [name, ...rest] = ahead;
    if (name === undefined) return { path: passed };
    const next = posix.join(passed, name);
    const link =
      name === '' || name === '.' || name === '..' ? undefined : await outside.readLink(root + next);
    if (link !== undefined && rest.length === 0) return { linkTo: link };
    if (link === undefined) {
      [passed, ahead] = [next, rest];
    } else {
      links += 1;
      [passed, ahead] = [link.startsWith('/') ? '/' : passed, [...link.split('/'), ...rest]];
    }
  }
  return undefined;
}

/** Where a file of a Python package may have gone: by its name or its content, in every place of that package. */
async function elsewhere(
  outside: Outside,
  root: string,
  path: string,
  expected: string | undefined,
): Promise<{ path: string; content: string }[]> {
  const [, name] = /\/(?:site|dist)-packages\/([\w.-]+)\/.*[^/]$/.exec(path) ?? [];
  if (name === undefined) return [];
  const places = await outside.run('find', [
    ...[root, '-xdev', '-type', 'd', '('],
    ...['-path', `*/site-packages/${name}`, '-o', '-path', `*/dist-packages/${name}`],
    ...[')', '-prune', '-print0'],
  ]);
  const folders = places.stdout.split('\0').filter((folder) => folder !== '');
  if (folders.length === 0) return [];
  const hashed = await outside.run(
    'find',
    [
      ...folders,
      ...['-xdev', '-type', 'f', '-name', `*${posix.extname(path)}`],
      ...['-exec', 'sha256sum', '--zero', '{}', '+'],
    ],
    { timeoutSeconds: 300 },
  );
  const files = hashed.stdout.split('\0').map((line) => ({ hash: line.slice(0, 64), path: line.slice(66) }));
  const matching = files
    .filter((file) => file.hash === expected || posix.basename(file.path) === posix.basename(path))
    .sort((a, b) => Number(b.hash === expected) - Number(a.hash === expected) || (a.path < b.path ? -1 : 1));
  const found: { path: string; content: string }[] = [];
  let bytes = 0;
  for (const file of matching) {
    const part = await outside.readPart(file.path, 0, mostFileBytes);
    if (part === undefined || part.fileBytes > mostFileBytes) continue;
    bytes += part.fileBytes;
    if (bytes > mostFoundBytes) break;
    if (sha256(part.bytes) === file.hash)
      found.push({ path: file.path.slice(root.length), content: base64(part.bytes) });
  }
  return found;
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
