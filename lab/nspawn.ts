import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, open, readdir, readFile, rm, rmdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { execa } from 'execa';
import { z } from 'zod';
import { labCache } from './cache.ts';
import { guestTree, hostsFile, LAB_USER, writeGuestFile } from './guest-tree.ts';
import type { LabHost } from './host.ts';
import { withLock } from './lock.ts';
import { type SshConnection, sshConnection } from './ssh.ts';

const BOOT_LIMIT_SECONDS = 120;
const POLL_MS = 20;

/** 10.77.0.0/16 holds this many networks of four addresses. */
const NETWORKS = 16_384;

/**
 * Runs in a mount namespace of its own, so that the overlay goes with the processes. nspawn leaves with 133 when the
 * host wants to boot again; it must not share a cgroup with this shell, since only a cgroup without processes of
 * its own can be divided.
 */
const BOOT_SCRIPT = `
cd "$1"; cgroup=$2; tree=$3; shift 3
echo $$ >"$cgroup/loop/cgroup.procs"
mount -t overlay overlay -o "lowerdir=$tree,upperdir=upper,workdir=work" root
status=133
while [ $status = 133 ]; do
  status=0
  sh -c 'echo $$ >"$0/host/cgroup.procs"; exec systemd-nspawn "$@"' "$cgroup" --directory=root "$@" || status=$?
done
exit $status
`;

const labRecord = z.strictObject({
  /** Which network of 10.77.0.0/16; also in the names of namespace, link and cgroup. */
  index: z.number(),
  tree: z.string(),
  privateKeyPath: z.string(),
  hostKey: z.string(),
});
type LabRecord = z.infer<typeof labRecord>;

export interface NspawnOptions {
  /** Unique among the nspawn labs of this lab cache: letters, digits and dashes, e.g. `lab-0`. */
  readonly name: string;
  /** Told what happens while the root tree is made (a minute, the first time only); default: nobody. */
  readonly progress?: (message: string) => void;
}

/**
 * A fresh Debian host in a systemd-nspawn container with a network of its own, which reaches this machine and nothing
 * else. Its root is an overlay on the common tree; podman's storage, which cannot lie on an overlay, is a plain folder.
 * Throws when a lab of this name exists.
 */
export async function createNspawn({ name, progress = () => {} }: NspawnOptions): Promise<LabHost> {
  const tree = await guestTree({ progress });
  const folder = folderOf(name);
  await mkdir(join(labCache(), 'nspawn'), { recursive: true });
  await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST')
      throw new Error(
        `a lab named "${name}" exists: take it down first (npm run lab down -- --name ${name})`,
      );
    throw error;
  });
  try {
    const record = await withLock('nspawn-networks', async () => {
      const index = await claimNetwork();
      const claimed: LabRecord = { index, tree: tree.path, ...tree.keys };
      await writeFile(join(folder, 'record.json'), JSON.stringify(claimed));
      return claimed;
    });
    await connectNetwork(record.index);
    for (const part of ['upper', 'work', 'root', 'containers']) await mkdir(join(folder, part));
    await writeOwnFiles(join(folder, 'upper'), name, record.index);
    const connection = connectionTo(name, record);
    await boot(name, record);
    await waitUntilBooted(name, connection);
    return nspawnHost(name, record, connection);
  } catch (error) {
    await removeNspawn(name);
    throw error;
  }
}

/** The lab of this name that another process created. Throws when there is none. */
export async function attachNspawn(name: string): Promise<LabHost> {
  const record = await readRecord(name);
  if (!record) throw new Error(`no nspawn lab named "${name}": there is no ${folderOf(name)}/record.json`);
  return nspawnHost(name, record, connectionTo(name, record));
}

/** Ends the lab of this name, in whatever state it is, and removes all that belongs to it; nothing to do is no error. */
export async function removeNspawn(name: string): Promise<void> {
  const record = await readRecord(name);
  if (record) {
    await killAll(record.index);
    await disconnectNetwork(record.index);
  }
  await rm(folderOf(name), { recursive: true, force: true });
}

/** Where this machine is reached from the lab at `address`: the other end of its network. */
export function hostSideOf(address: string): string {
  return address.replace(/\d+$/, (last) => String(Number(last) - 1));
}

/** Where cgroup v2 is mounted on this machine: alone, or beside the older kind. */
export function cgroupRoot(): string {
  const beside = '/sys/fs/cgroup/unified';
  return existsSync(beside) ? beside : '/sys/fs/cgroup';
}

function nspawnHost(name: string, record: LabRecord, connection: SshConnection): LabHost {
  const address = addresses(record.index).guest;
  const bootId = async () => (await connection.run('cat /proc/sys/kernel/random/boot_id')).stdout;
  return {
    kind: 'nspawn',
    name,
    address,
    sshPort: 22,
    user: LAB_USER,
    privateKeyPath: record.privateKeyPath,
    hostKey: record.hostKey,
    engineUrl: `http://${address}:7770`,
    ssh: connection.run,
    async reboot() {
      const before = await bootId();
      await connection.run('systemctl --no-block reboot', { root: true });
      // sshd of the boot that ends may still accept; its answer, or none, is not the one that is waited for.
      await waitUntilBooted(name, connection, async () => ![before, ''].includes(await bootId()));
    },
    async cutPower() {
      await killAll(record.index);
      await boot(name, record);
      await waitUntilBooted(name, connection);
    },
    async down() {
      await connection.disconnect();
      await removeNspawn(name);
    },
  };
}

/** Throws with the console's last lines when sshd does not accept the login, or `isNew` stays false, within the limit. */
async function waitUntilBooted(
  name: string,
  connection: SshConnection,
  isNew: () => Promise<boolean> = async () => true,
): Promise<void> {
  const deadline = Date.now() + BOOT_LIMIT_SECONDS * 1000;
  try {
    do {
      const left = (deadline - Date.now()) / 1000;
      if (left < 0) throw new Error(`no new boot within ${BOOT_LIMIT_SECONDS} s`);
      await connection.connect(left);
    } while (!(await isNew()));
  } catch (error) {
    const lines = (await readFile(consoleOf(name), 'utf8')).trimEnd().split('\n').slice(-20);
    throw new Error(`"${name}" did not boot; its console says last:\n${lines.join('\n')}`, { cause: error });
  }
}

async function boot(name: string, record: LabRecord): Promise<void> {
  const folder = folderOf(name);
  const cgroup = cgroupOf(record.index);
  for (const part of ['loop', 'host']) await mkdir(join(cgroup, part), { recursive: true });
  const console = await open(consoleOf(name), 'a');
  try {
    const child = spawn(
      'unshare',
      [
        ...['--mount', '--propagation', 'private', 'sh', '-euc', BOOT_SCRIPT, 'boot'],
        ...[folder, cgroup, record.tree],
        ...['--boot', `--machine=${namespaceOf(record.index)}`, '--register=no', '--keep-unit'],
        ...[`--network-namespace-path=/run/netns/${namespaceOf(record.index)}`],
        ...[`--bind=${join(folder, 'containers')}:/var/lib/containers`],
        ...['--resolv-conf=off', '--timezone=off', '--link-journal=no'],
        ...['--capability=all', '--system-call-filter=add_key keyctl bpf'],
        `--rlimit=RLIMIT_NOFILE=${await hardLimit('Max open files')}`,
      ],
      {
        env: { ...process.env, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY: '1' },
        stdio: ['ignore', console.fd, console.fd],
        detached: true,
      },
    );
    child.unref();
  } finally {
    await console.close();
  }
}

async function writeOwnFiles(root: string, name: string, index: number): Promise<void> {
  const openFiles = await hardLimit('Max open files');
  const ulimits = [
    `nofile=${openFiles}:${openFiles}`,
    // Where this machine may not raise limits itself, podman's own wish for more makes every container fail.
    'nproc=4096:4096',
  ];
  const files = [
    { path: '/etc/hostname', content: `${name}\n` },
    { path: '/etc/machine-id', content: `${randomUUID().replaceAll('-', '')}\n` },
    { path: '/etc/hosts', content: hostsFile(name, addresses(index).machine) },
    {
      path: '/etc/containers/containers.conf',
      content: `[containers]\npids_limit = 0\ndefault_ulimits = ${JSON.stringify(ulimits)}\n\n[engine]\nruntime = "runc"\n`,
    },
  ];
  for (const file of files) await writeGuestFile(root, file);
  // A container cannot load modules, and one failed unit makes the state of the whole system "degraded".
  const masked = join(root, 'etc/systemd/system/systemd-modules-load.service');
  await mkdir(dirname(masked), { recursive: true });
  await symlink('/dev/null', masked);
}

/** SIGKILL to every process of the lab, and its cgroups away. */
async function killAll(index: number): Promise<void> {
  const cgroup = cgroupOf(index);
  if (!existsSync(cgroup)) return;
  await writeFile(join(cgroup, 'cgroup.kill'), '1');
  while (/^populated 1$/m.test(await readFile(join(cgroup, 'cgroup.events'), 'utf8')))
    await setTimeout(POLL_MS);
  // A cgroup that was killed once makes Linux 6.18 kill whatever systemd clones from it into another one.
  await removeCgroup(cgroup);
}

async function removeCgroup(cgroup: string): Promise<void> {
  for (const entry of await readdir(cgroup, { withFileTypes: true })) {
    if (entry.isDirectory()) await removeCgroup(join(cgroup, entry.name));
  }
  await rmdir(cgroup);
}

/** A network namespace is made by one process only, whichever lab cache it uses; so its name is the claim. */
async function claimNetwork(): Promise<number> {
  for (let index = 0; index < NETWORKS; index++) {
    if (existsSync(join('/run/netns', namespaceOf(index)))) continue;
    const added = await execa('ip', ['netns', 'add', namespaceOf(index)], { reject: false });
    if (added.exitCode === 0) return index;
    if (!added.stderr.includes('File exists'))
      throw new Error(`no network namespace for a lab: ${added.stderr}`);
  }
  throw new Error(`all ${NETWORKS} networks of labs are taken: npm run lab down -- --all`);
}

async function connectNetwork(index: number): Promise<void> {
  const namespace = namespaceOf(index);
  const link = linkOf(index);
  const { machine, guest } = addresses(index);
  await ip('link', 'add', link, 'type', 'veth', 'peer', 'name', 'host0', 'netns', namespace);
  await ip('address', 'add', `${machine}/30`, 'dev', link);
  await ip('link', 'set', link, 'up');
  await ip('-n', namespace, 'link', 'set', 'lo', 'up');
  await ip('-n', namespace, 'address', 'add', `${guest}/30`, 'dev', 'host0');
  await ip('-n', namespace, 'link', 'set', 'host0', 'up');
  await ip('-n', namespace, 'route', 'add', 'default', 'via', machine);
}

async function disconnectNetwork(index: number): Promise<void> {
  if (existsSync(join('/sys/class/net', linkOf(index)))) await ip('link', 'delete', linkOf(index));
  if (existsSync(join('/run/netns', namespaceOf(index)))) await ip('netns', 'delete', namespaceOf(index));
}

async function ip(...words: string[]): Promise<void> {
  await execa('ip', words, { stdin: 'ignore' });
}

/** The hard limit of this process, which is the most that a lab can have where limits cannot be raised. */
async function hardLimit(name: string): Promise<string> {
  const limits = await readFile('/proc/self/limits', 'utf8');
  const found = new RegExp(`^${name} +\\S+ +(\\S+)`, 'm').exec(limits)?.[1];
  if (!found) throw new Error(`/proc/self/limits has no line "${name}"`);
  return found === 'unlimited' ? 'infinity' : found;
}

async function readRecord(name: string): Promise<LabRecord | undefined> {
  const text = await readFile(join(folderOf(name), 'record.json'), 'utf8').catch(() => undefined);
  return text === undefined ? undefined : labRecord.parse(JSON.parse(text));
}

function connectionTo(name: string, record: LabRecord): SshConnection {
  return sshConnection(folderOf(name), {
    address: addresses(record.index).guest,
    port: 22,
    user: LAB_USER,
    privateKeyPath: record.privateKeyPath,
    hostKey: record.hostKey,
  });
}

function addresses(index: number): { machine: string; guest: string } {
  const at = (offset: number) => `10.77.${index >> 6}.${((index & 63) << 2) + offset}`;
  return { machine: at(1), guest: at(2) };
}

const cgroupOf = (index: number): string => join(cgroupRoot(), namespaceOf(index));
const folderOf = (name: string): string => join(labCache(), 'nspawn', name);
const consoleOf = (name: string): string => join(folderOf(name), 'console.log');
const namespaceOf = (index: number): string => `slot-lab-${index}`;
const linkOf = (index: number): string => `slotlab${index}`;
