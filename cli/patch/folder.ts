import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { parsePatchHashes, patchHashesFile, patchHashesText } from '../../shape/patches.ts';
import { sha256 } from '../../shape/release.ts';
import { Refusal, refuseOnFileError } from './refusal.ts';

const patchesFolder = 'patches';

/** What lies below `patches/`. */
export interface PatchFolder {
  /** By their paths below it. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** Hashes that `SHA256SUMS` has of them; none where there is no such file. */
  readonly recorded: ReadonlyMap<string, string>;
}

export function readPatchFolder(projectFolder: string): PatchFolder {
  const folder = join(projectFolder, patchesFolder);
  const files = new Map<string, Buffer>();
  for (const entry of existsSync(folder)
    ? readdirSync(folder, { withFileTypes: true, recursive: true })
    : []) {
    if (!entry.isFile() || entry.name.startsWith('.')) continue;
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(folder.length + 1);
    if (![patchHashesFile, lockFile].includes(name)) files.set(name, readFileSync(path));
  }
  const hashes = join(folder, patchHashesFile);
  return {
    files,
    recorded: parsePatchHashes(existsSync(hashes) ? readFileSync(hashes, 'utf8') : ''),
  };
}

/** Becomes `SHA256SUMS`: whoever makes it writes, all others wait for their turn. */
const lockFile = `${patchHashesFile}.new`;

export interface PatchWrite {
  /** Path below `patches/`. */
  readonly name: string;
  readonly content: Buffer;
  /** What is there and may be replaced; undefined: nothing. */
  readonly replaces: Buffer | undefined;
}

/**
 * Writes patches and records their hashes. All of them or none: also on a full disk, on Ctrl-C, and beside another
 * call.
 *
 * @throws Refusal where that cannot be: no room, another call is under way, a file is not what it is to replace
 */
export function writePatches(projectFolder: string, writes: readonly PatchWrite[]): void {
  refuseOnFileError(() => writeTogether(projectFolder, writes));
}

function writeTogether(projectFolder: string, writes: readonly PatchWrite[]): void {
  const folder = join(projectFolder, patchesFolder);
  mkdirSync(folder, { recursive: true });
  const lock = join(folder, lockFile);
  // With a listener a signal waits until Node's next turn, and all that follows is one.
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const afterwards = (): void => undefined;
  for (const signal of signals) process.on(signal, afterwards);
  const unfinished: string[] = [];
  try {
    const lockHandle = openLock(lock);
    try {
      unfinished.push(lock);
      const before = readPatchFolder(projectFolder);
      const renames = writes.flatMap(({ name, content, replaces }) => {
        const there = before.files.get(name);
        if (there === undefined ? replaces !== undefined : !replaces?.equals(there)) {
          throw new Refusal(`patches/${name} is not what it was a moment ago`);
        }
        if (replaces?.equals(content)) return [];
        const path = join(folder, name);
        const temporary = join(dirname(path), `.${name.split('/').at(-1)}.new`);
        unfinished.push(temporary);
        writeSynced(temporary, content);
        return [{ from: temporary, to: path }];
      });
      const hashes = new Map(before.recorded);
      for (const { name, content } of writes) hashes.set(name, sha256(content));
      writeFileSync(lockHandle, patchHashesText(hashes));
      fsyncSync(lockHandle);
      for (const { from, to } of renames) renameSync(from, to);
      renameSync(lock, join(folder, patchHashesFile));
      // From here on these names are another call's.
      unfinished.length = 0;
    } finally {
      closeSync(lockHandle);
    }
  } finally {
    for (const path of unfinished) rmSync(path, { force: true });
    for (const signal of signals) process.off(signal, afterwards);
  }
}

function openLock(path: string): number {
  try {
    return openSync(path, 'wx');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new Refusal(
      `${path} is there: another slot patch writes at this moment, or one was killed; remove it if none runs`,
    );
  }
}

export function writeSynced(path: string, content: string | Uint8Array): void {
  const handle = openSync(path, 'w', 0o644);
  try {
    writeFileSync(handle, content);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
