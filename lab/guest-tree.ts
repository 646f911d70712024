import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import { labCache } from './cache.ts';
import { debianMirror } from './debian.ts';
import { withLock } from './lock.ts';

/** The name and port under which every lab reaches this machine's registry. */
export const REGISTRY_NAME = 'registry.lab';
export const REGISTRY_PORT = 5000;

/** The login of every lab. */
export const LAB_USER = 'dank';

const SUITE = 'trixie';

const PACKAGES = [
  'systemd',
  'systemd-sysv',
  'dbus',
  'openssh-server',
  'podman',
  'crun',
  'runc',
  'netavark',
  'aardvark-dns',
  'curl',
  'ca-certificates',
  'iproute2',
  'procps',
  'util-linux',
  'patch',
  'sudo',
  'tar',
];

/** They wake up by themselves and disturb measures; nothing of the product needs them. */
const MASKED_UNITS = [
  'apt-daily.timer',
  'apt-daily-upgrade.timer',
  'dpkg-db-backup.timer',
  'e2scrub_all.timer',
  'e2scrub_reap.service',
  'fstrim.timer',
  'podman-auto-update.timer',
  'netavark-dhcp-proxy.socket',
  'netavark-dhcp-proxy.service',
  'getty@tty1.service',
  'console-getty.service',
  'serial-getty@ttyS0.service',
  'systemd-pstore.service',
  'systemd-networkd-wait-online.service',
];

const FILES: readonly GuestFile[] = [
  {
    path: '/etc/ssh/sshd_config.d/lab.conf',
    // OpenSSH 10 penalises addresses whose connections end without a login, which is how readiness is polled.
    content: [
      'PermitRootLogin no',
      'PasswordAuthentication no',
      'KbdInteractiveAuthentication no',
      'UseDNS no',
      'PerSourcePenalties no',
      'MaxStartups 500:30:1000',
      'MaxSessions 100',
      '',
    ].join('\n'),
  },
  {
    path: '/etc/containers/registries.conf.d/lab.conf',
    content: `[[registry]]\nlocation = "${REGISTRY_NAME}:${REGISTRY_PORT}"\ninsecure = true\n`,
  },
  { path: `/etc/sudoers.d/${LAB_USER}`, content: `${LAB_USER} ALL=(ALL) NOPASSWD: ALL\n`, mode: 0o440 },
  { path: '/etc/systemd/journald.conf.d/lab.conf', content: '[Journal]\nStorage=persistent\n' },
  { path: '/etc/hostname', content: 'lab\n' },
  { path: '/etc/machine-id', content: '' },
  { path: '/etc/resolv.conf', content: '' },
  { path: '/etc/apt/sources.list', content: '' },
];

const COMMANDS = [
  `useradd --create-home --shell /bin/bash ${LAB_USER}`,
  `systemctl mask ${MASKED_UNITS.join(' ')}`,
  'systemctl set-default multi-user.target',
  'systemctl enable ssh.service',
  'mkdir -p /etc/systemd/system-generators && ln -s /dev/null /etc/systemd/system-generators/systemd-ssh-generator',
  'mkdir -p /var/log/journal',
  'apt-get clean && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin',
];

export interface GuestTreeOptions {
  /** Debian packages that the kind of lab needs beside the common ones; default none. */
  readonly extraPackages?: readonly string[];
  /** Called with a line about each step; default: none is told. */
  readonly progress?: (message: string) => void;
}

export interface GuestTree {
  /** The finished root tree. Never written to again: clone it or lay something over it. */
  readonly path: string;
  /** Hash of all that went into the tree: a thing made of the tree is stale when this differs. */
  readonly recipe: string;
  readonly keys: LabKeys;
}

export interface LabKeys {
  /** Private key (ed25519, no passphrase) of the login. */
  readonly privateKeyPath: string;
  /** The host's public key, `ssh-ed25519 AAAA…`; every lab has the same. */
  readonly hostKey: string;
}

export interface GuestFile {
  readonly path: string;
  readonly content: string;
  /** Default 0o644. */
  readonly mode?: number;
}

/**
 * The root tree of a Debian 13 host, common to all kinds of lab: podman, sshd and the login, nothing of the product.
 * Made with debootstrap on the first call (root, about a minute), found in the cache afterwards. Left to the kind:
 * `/etc/hosts` (see `hostsFile`), `/etc/machine-id` (empty here), host name, network.
 */
export async function guestTree(options: GuestTreeOptions = {}): Promise<GuestTree> {
  const progress = options.progress ?? (() => {});
  const packages = [...PACKAGES, ...(options.extraPackages ?? [])];
  const { keys, hostPrivateKey, loginPublicKey } = await labKeys();
  const files: readonly GuestFile[] = [
    ...FILES,
    { path: '/etc/ssh/ssh_host_ed25519_key', content: hostPrivateKey, mode: 0o600 },
    { path: '/etc/ssh/ssh_host_ed25519_key.pub', content: `${keys.hostKey}\n` },
    { path: `/home/${LAB_USER}/.ssh/authorized_keys`, content: loginPublicKey, mode: 0o600 },
  ];
  const ownership = `chown -R ${LAB_USER}:${LAB_USER} /home/${LAB_USER} && chmod 700 /home/${LAB_USER}/.ssh`;
  const recipe = createHash('sha256')
    .update(JSON.stringify([SUITE, packages, files, COMMANDS, ownership]))
    .digest('hex')
    .slice(0, 16);
  const path = join(labCache(), `tree-${recipe}`);

  if (!existsSync(path)) {
    await withLock(`tree-${recipe}`, async () => {
      if (existsSync(path)) return;
      const unfinished = await mkdtemp(join(labCache(), 'unfinished-tree-'));
      try {
        await debootstrap(unfinished, packages, progress);
        progress('configuring the tree: login, ssh, podman, journal');
        for (const command of COMMANDS) await inTree(unfinished, command);
        for (const file of files) await writeGuestFile(unfinished, file);
        await inTree(unfinished, ownership);
        await rename(unfinished, path);
      } finally {
        await rm(unfinished, { recursive: true, force: true });
      }
    });
  }
  return { path, recipe, keys };
}

/** The text of `/etc/hosts` of a lab that reaches this machine's registry at `registryAddress`. */
export function hostsFile(hostname: string, registryAddress: string): string {
  return `127.0.0.1 localhost ${hostname}\n::1 localhost\n${registryAddress} ${REGISTRY_NAME}\n`;
}

/** Writes a file of the guest below `root`, with the folders that it needs. */
export async function writeGuestFile(root: string, file: GuestFile): Promise<void> {
  const path = join(root, file.path);
  await mkdir(dirname(path), { recursive: true });
  // The package manager may have left a link to somewhere outside the tree, or a file that is not writable.
  await rm(path, { force: true });
  await writeFile(path, file.content);
  await chmod(path, file.mode ?? 0o644);
}

async function debootstrap(
  target: string,
  packages: readonly string[],
  progress: (message: string) => void,
): Promise<void> {
  if (process.getuid?.() !== 0) throw new Error('making the root tree of a lab needs root (debootstrap)');
  const downloads = join(labCache(), 'debs');
  await mkdir(downloads, { recursive: true });
  await chmod(target, 0o755);
  progress(`debootstrap of Debian ${SUITE}, ${packages.length} packages and what they need (about a minute)`);
  const child = execa(
    'debootstrap',
    [
      '--variant=minbase',
      `--cache-dir=${downloads}`,
      `--include=${packages.join(',')}`,
      SUITE,
      target,
      await debianMirror(),
    ],
    { stdin: 'ignore', all: true, reject: false },
  );
  let stage = '';
  for await (const line of createInterface({ input: child.all })) {
    const now = /^I: (Retrieving|Extracting|Unpacking|Configuring)\b/.exec(line)?.[1] ?? stage;
    if (now !== stage) progress(`debootstrap: ${now.toLowerCase()}`);
    stage = now;
  }
  const result = await child;
  if (result.exitCode !== 0) {
    throw new Error(
      `debootstrap of ${SUITE} failed (exit ${result.exitCode}):\n${result.all.split('\n').slice(-15).join('\n')}`,
    );
  }
}

async function inTree(root: string, command: string): Promise<void> {
  await execa('chroot', [root, '/bin/sh', '-euc', command], {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
    extendEnv: false,
    stdin: 'ignore',
  });
}

async function labKeys(): Promise<{ keys: LabKeys; hostPrivateKey: string; loginPublicKey: string }> {
  const folder = join(labCache(), 'keys');
  if (!existsSync(folder)) {
    await withLock('keys', async () => {
      if (existsSync(folder)) return;
      await mkdir(labCache(), { recursive: true });
      const unfinished = await mkdtemp(join(labCache(), 'unfinished-keys-'));
      for (const key of ['login', 'host']) {
        await execa('ssh-keygen', [
          '-q',
          '-t',
          'ed25519',
          '-N',
          '',
          '-C',
          `lab-${key}`,
          '-f',
          join(unfinished, key),
        ]);
      }
      await rename(unfinished, folder);
    });
  }
  const hostPublicKey = await readFile(join(folder, 'host.pub'), 'utf8');
  return {
    keys: {
      privateKeyPath: join(folder, 'login'),
      hostKey: hostPublicKey.trim().split(' ').slice(0, 2).join(' '),
    },
    hostPrivateKey: await readFile(join(folder, 'host'), 'utf8'),
    loginPublicKey: await readFile(join(folder, 'login.pub'), 'utf8'),
  };
}
