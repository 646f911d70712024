import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { execa } from 'execa';
import type { LabKind } from './host.ts';

/** Which Debian package brings which program that a lab needs on this machine. */
const PACKAGE_OF: Readonly<Record<LabKind, Readonly<Record<string, string>>>> = {
  nspawn: {
    'systemd-nspawn': 'systemd-container',
    debootstrap: 'debootstrap',
    skopeo: 'skopeo',
    'docker-registry': 'docker-registry',
    ip: 'iproute2',
    ssh: 'openssh-client',
    'ssh-keygen': 'openssh-client',
    unshare: 'util-linux',
  },
  vm: {
    'qemu-system-x86_64': 'qemu-system-x86',
    'qemu-img': 'qemu-utils',
    skopeo: 'skopeo',
    'docker-registry': 'docker-registry',
    debootstrap: 'debootstrap',
    mke2fs: 'e2fsprogs',
    xz: 'xz-utils',
    ssh: 'openssh-client',
    'ssh-keygen': 'openssh-client',
  },
};

/** Where distributions put programs for root, which an ordinary user's PATH may lack. */
const ROOT_FOLDERS = ['/usr/sbin', '/sbin'];

/** Programs that a lab of this kind needs and that are not on this machine. */
export function missingPrograms(kind: LabKind): string[] {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...ROOT_FOLDERS];
  return Object.keys(PACKAGE_OF[kind]).filter(
    (program) => !folders.some((folder) => existsSync(join(folder, program))),
  );
}

/** The Debian packages that bring these programs, each once. */
export function packagesOf(kind: LabKind, programs: readonly string[]): string[] {
  return [...new Set(programs.flatMap((program) => PACKAGE_OF[kind][program] ?? []))];
}

/** Installs Debian packages with this machine's apt, without what they only recommend. Throws with apt's last lines. */
export async function installPackages(
  packages: readonly string[],
  progress: (message: string) => void,
): Promise<void> {
  progress(`installing Debian packages: ${packages.join(' ')}`);
  if (packages.includes('docker-registry') && existsSync('/run/systemd/system')) {
    // Its service would take port 5000 for itself, now and at each boot.
    await execa('systemctl', ['mask', 'docker-registry.service']);
  }
  const apt = (...words: string[]) =>
    execa('apt-get', ['-qq', ...words], {
      env: { DEBIAN_FRONTEND: 'noninteractive' },
      stdin: 'ignore',
      all: true,
      reject: false,
    });
  await apt('update');
  const installed = await apt('install', '--yes', '--no-install-recommends', ...packages);
  if (installed.exitCode !== 0) {
    const lastLines = installed.all.split('\n').slice(-10).join('\n');
    throw new Error(
      `apt-get install ${packages.join(' ')} failed (exit ${installed.exitCode}):\n${lastLines}`,
    );
  }
}
