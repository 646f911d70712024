import { randomUUID } from 'node:crypto';
import {
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const refusalLastsMs = 24 * 60 * 60 * 1000;

/** Where the tool chain lives unless told otherwise: `$XDG_CACHE_HOME/slot/toolchain`, default `~/.cache/…`. */
export function defaultCacheFolder(): string {
  return path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache'), 'slot', 'toolchain');
}

export async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}

/**
 * Makes `folder` exist, filled by `fill`, which is given an empty folder beside it that is renamed when all is in it.
 * Of several processes one fills and the others wait for it; the lock of a process that has died counts for nothing.
 */
export async function fillOnce(
  folder: string,
  fill: (partial: string) => Promise<void>,
  progress: (line: string) => void,
): Promise<void> {
  if (await exists(folder)) return;
  await mkdir(path.dirname(folder), { recursive: true });
  const unlock = await lock(`${folder}.lock`, progress);
  try {
    if (await exists(folder)) return;
    await removePartialsOf(folder);
    const partial = await mkdtemp(`${folder}.partial-`);
    await fill(partial);
    await rename(partial, folder);
  } finally {
    await removePartialsOf(folder);
    await unlock();
  }
}

async function removePartialsOf(folder: string): Promise<void> {
  const beginning = `${path.basename(folder)}.partial-`;
  for (const name of await readdir(path.dirname(folder))) {
    if (name.startsWith(beginning))
      await rm(path.join(path.dirname(folder), name), { recursive: true, force: true });
  }
}

async function lock(file: string, progress: (line: string) => void): Promise<() => Promise<void>> {
  const own = `${file}.${randomUUID()}`;
  await writeFile(own, JSON.stringify({ pid: process.pid, started: await startOf(process.pid) }));
  let announced = false;
  for (;;) {
    try {
      // A hard link appears with its content, so nobody can read a lock without an owner.
      await link(own, file);
      await unlink(own);
      return () => rm(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const owner = await ownerOf(file);
    if (owner === 'dead') {
      await rm(file, { force: true });
      continue;
    }
    if (owner !== 'gone' && !announced) {
      progress(`waiting for process ${owner.pid}, which prepares ${path.basename(file, '.lock')} already`);
      announced = true;
    }
    await sleep(200);
  }
}

async function ownerOf(file: string): Promise<{ pid: number } | 'dead' | 'gone'> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) return 'gone';
  const owner = JSON.parse(text) as { pid: number; started: string };
  try {
    process.kill(owner.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return 'dead';
  }
  return (await startOf(owner.pid)) === owner.started ? owner : 'dead';
}

/** When a process began, so that another one that got its number later is not taken for it; '' where not told. */
async function startOf(pid: number): Promise<string> {
  const line = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The command name before the last parenthesis may hold blanks; the start time is the twentieth field after it.
  return line.slice(line.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

/** Thrown for what a server would not give; remembered, so that asking in vain costs nothing on the next run. */
export class Refused extends Error {}

/** Runs `ask`, unless it was refused less than a day ago: then throws the refusal that `note` holds. */
export async function askAtMostDaily<Answer>(note: string, ask: () => Promise<Answer>): Promise<Answer> {
  const noted = await stat(note).catch(() => undefined);
  if (noted && Date.now() - noted.mtimeMs < refusalLastsMs) {
    throw new Refused(
      `${(await readFile(note, 'utf8')).trim()} (asked on ${noted.mtime.toISOString()}; to ask again now: rm ${note})`,
    );
  }
  try {
    return await ask();
  } catch (error) {
    if (error instanceof Refused) {
      await mkdir(path.dirname(note), { recursive: true });
      await writeFile(note, `${error.message}\n`);
    }
    throw error;
  }
}
