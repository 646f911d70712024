import { readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { labCache } from '../cache.ts';

/** The user's cache folder, in which the lab's lies. */
export const cacheHome = (): string => dirname(dirname(labCache()));

/** What stays with root: it is made, used and removed by root only. */
const madeForRoot = /^(tree-|nspawn$|debs$|unfinished-)/;

/** Gives what root made in another user's cache to that user, who can then run virtual machines without root. */
export async function handToCacheOwner(): Promise<void> {
  const { uid, gid } = await stat(cacheHome());
  if (process.getuid?.() !== 0 || uid === 0) return;
  const names = (await readdir(labCache())).filter((name) => !madeForRoot.test(name));
  await execa('chown', [`${uid}:${gid}`, dirname(labCache()), labCache()]);
  await execa('chown', ['--recursive', `${uid}:${gid}`, ...names.map((name) => join(labCache(), name))]);
}
