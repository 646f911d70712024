import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { labCache } from '../cache.ts';
import { guestTree, LAB_USER, type LabKeys } from '../guest-tree.ts';
import { withLock } from '../lock.ts';
import { type SshConnection, sshConnection } from '../ssh.ts';
import { handToCacheOwner } from './cache-owner.ts';
import { freeze } from './freeze.ts';
import { buildImage, imageFiles, imageRecipe, vmPackages } from './image.ts';
import {
  diskCache,
  emulator,
  hardware,
  killMachine,
  launchOnFreePorts,
  waitUntilBooted,
  waitUntilEnded,
} from './machine.ts';
import { type Progress, phase } from './progress.ts';

/** A booted guest, frozen: every virtual machine of the lab is resumed from one, none ever writes to it. */
export interface Template {
  readonly folder: string;
  readonly kernel: string;
  readonly initrd: string;
  readonly disk: string;
  readonly memoryFile: string;
  readonly stateFile: string;
  readonly keys: LabKeys;
}

/**
 * Run once as root before the freeze, so that a fresh host finds programs, libraries and kernel modules in memory:
 * a container on either kind of network, and the tools that a login uses. What it leaves is an empty podman store.
 */
const warmUp = `set -e
podman info >/dev/null
tar -C / -c usr/bin/busybox | podman import -q - warm-up >/dev/null
podman run --rm --network=host warm-up /usr/bin/busybox true
podman run --rm warm-up /usr/bin/busybox true
systemd-run --wait --quiet true
systemctl daemon-reload
podman rmi --all --force >/dev/null
curl --version >/dev/null
journalctl --sync
sync`;

/** How long sshd of a guest that is up may take to answer, on cores busy with other jobs. */
export const connectSeconds = 300;

/** Where templates and running machines lie. */
export const vmFolder = (): string => join(labCache(), 'vm');
const runFolder = (): string => join(vmFolder(), 'run');
export const machineFolder = (name: string): string => join(runFolder(), name);
/** The file that tells another process how to go on with the machine of this folder. */
export const recordOf = (folder: string): string => join(folder, 'machine.json');

const dayMs = 24 * 60 * 60 * 1000;

/**
 * The template for machines of this size, made on the first call (root, three minutes) and again whenever the tree,
 * the emulator or an option of either changed; processes that want the same one wait for the first.
 */
export async function ensureTemplate(memoryMiB: number, progress: Progress): Promise<Template> {
  const tree = await guestTree({ extraPackages: vmPackages, progress });
  const key = await templateKey(tree.recipe, memoryMiB);
  const template = templateIn(templateFolder(key), tree.keys);
  if (await inUseFromNow(template)) return template;
  // One lock for all templates: whatever is unfinished while it is held was left behind.
  await withLock('vm-template', async () => {
    if (await inUseFromNow(template)) return;
    await mkdir(runFolder(), { recursive: true });
    await removeLeftovers();
    const unfinished = await mkdtemp(join(vmFolder(), 'unfinished-'));
    try {
      await build(tree.path, templateIn(unfinished, tree.keys), memoryMiB, progress);
      await rename(unfinished, template.folder);
      await handToCacheOwner();
    } finally {
      await killMachine(unfinished);
      await rm(unfinished, { recursive: true, force: true });
    }
  });
  return template;
}

/** Notes that the template is used; false when there is none. */
async function inUseFromNow(template: Template): Promise<boolean> {
  if (!existsSync(template.folder)) return false;
  const now = new Date();
  await utimes(template.folder, now, now);
  return true;
}

/** Removes builds that were interrupted, and templates (a gigabyte each) that nobody used for a day and no machine stands on. */
async function removeLeftovers(): Promise<void> {
  const records = await machineRecords();
  for (const name of await readdir(vmFolder())) {
    const folder = join(vmFolder(), name);
    if (name.startsWith('unfinished-')) await killMachine(folder);
    else if (!name.startsWith('template-') || records.some((record) => record.includes(folder))) continue;
    else if (Date.now() - (await stat(folder)).mtimeMs < dayMs) continue;
    await rm(folder, { recursive: true });
  }
}

async function machineRecords(): Promise<string[]> {
  const machines = await readdir(runFolder());
  return Promise.all(machines.map((name) => readFile(recordOf(machineFolder(name)), 'utf8').catch(() => '')));
}

/** Whether the template can be used without root, that is, without anything being made. */
export async function templateExists(memoryMiB: number): Promise<boolean> {
  // Without root a missing tree is an error, not the beginning of a debootstrap.
  const tree = await guestTree({ extraPackages: vmPackages }).catch(() => undefined);
  if (tree === undefined) return false;
  return existsSync(templateFolder(await templateKey(tree.recipe, memoryMiB)));
}

const templateFolder = (key: string): string => join(vmFolder(), `template-${key}`);

function templateIn(folder: string, keys: LabKeys): Template {
  const { kernel, initrd } = imageFiles(folder);
  return {
    ...{ folder, kernel, initrd, keys },
    disk: join(folder, 'warm.qcow2'),
    memoryFile: join(folder, 'warm.memory'),
    stateFile: join(folder, 'warm.state'),
  };
}

async function templateKey(treeRecipe: string, memoryMiB: number): Promise<string> {
  const { stdout: emulatorVersion } = await execa(emulator, ['--version']);
  const ingredients = [treeRecipe, emulatorVersion, memoryMiB, hardware, diskCache, imageRecipe, warmUp];
  return createHash('sha256').update(JSON.stringify(ingredients)).digest('hex').slice(0, 16);
}

async function build(
  treePath: string,
  template: Template,
  memoryMiB: number,
  progress: Progress,
): Promise<void> {
  const image = await phase(progress, 'kernel and disk', 10, () => buildImage(treePath, template.folder));
  // Relative, so that the folder can be renamed.
  await createOverlay({
    backing: image.disk.slice(template.folder.length + 1),
    format: 'raw',
    disk: template.disk,
  });
  const { machine, ports } = await launchOnFreePorts(template, {
    memoryMiB,
    memoryFile: { path: template.memoryFile, mapping: 'shared' },
    endsWithProcess: true,
  });
  await phase(progress, 'first boot', 45, () => waitUntilBooted(template.folder));
  const connection = sshConnection(template.folder, {
    address: '127.0.0.1',
    port: ports.ssh,
    user: LAB_USER,
    privateKeyPath: template.keys.privateKeyPath,
    hostKey: template.keys.hostKey,
  });
  await phase(progress, 'warm-up of podman', 40, () => warm(connection));
  await phase(progress, 'freeze', 5, async () => {
    // Time for the guest to close the connection: nobody would answer it after a resume.
    await sleep(2000);
    await freeze(machine, template.stateFile);
    await waitUntilEnded(machine.processId);
  });
}

async function warm(connection: SshConnection): Promise<void> {
  await connection.connect(connectSeconds);
  try {
    const result = await connection.run(warmUp, { root: true });
    if (result.exitCode !== 0)
      throw new Error(`the warm-up of the vm template failed (exit ${result.exitCode}): ${result.stderr}`);
  } finally {
    await connection.disconnect();
  }
}

/** A new disk that reads from `backing` what was not written to it. */
export async function createOverlay(overlay: {
  backing: string;
  format: 'raw' | 'qcow2';
  disk: string;
}): Promise<void> {
  const { backing, format, disk } = overlay;
  await execa('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', backing, '-F', format, disk]);
}
