import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { type GuestFile, hostsFile, writeGuestFile } from '../guest-tree.ts';
import { extractKernel, initialRamDisk, initScript } from './boot-files.ts';
import { guestNetwork, readyLine } from './machine.ts';

/** What a host with a kernel of its own needs beside the packages of every lab. */
export const vmPackages = [
  'udev',
  'nftables',
  'catatonit',
  'busybox-static',
  'linux-image-cloud-amd64',
  'initramfs-tools',
];

/** Room for the product (an engine image and a 127 MB Node) many times over; the file is sparse. */
const diskSize = '6G';

const hostname = 'lab';

const files: readonly GuestFile[] = [
  { path: '/etc/hosts', content: hostsFile(hostname, guestNetwork.gateway) },
  { path: '/etc/resolv.conf', content: `nameserver ${guestNetwork.nameServer}\n` },
  { path: '/etc/fstab', content: '/dev/vda / ext4 defaults,noatime 0 0\n' },
  {
    path: '/etc/systemd/network/10-lab.network',
    // By name: `Type=ether` would take podman's veth devices as well.
    content: [
      '[Match]',
      'Name=en*',
      '[Network]',
      `Address=${guestNetwork.address}`,
      `Gateway=${guestNetwork.gateway}`,
      'LinkLocalAddressing=no',
      'IPv6AcceptRA=no',
      '',
    ].join('\n'),
  },
  {
    path: '/etc/systemd/system/lab-ready.service',
    content: [
      '[Unit]',
      'Description=Tell the serial console that sshd can be reached',
      'Wants=ssh.service',
      'After=ssh.service systemd-networkd.service systemd-logind.service dbus.service',
      '[Service]',
      'Type=oneshot',
      'ExecStartPre=/usr/lib/systemd/systemd-networkd-wait-online -4 --timeout=60',
      `ExecStart=/bin/sh -c 'echo ${readyLine} >/dev/ttyS0'`,
      '',
    ].join('\n'),
  },
  {
    path: '/etc/modprobe.d/lab.conf',
    content: ['kvm_amd', 'kvm_intel', 'kvm', 'ahci', 'serio_raw', 'evdev', 'button', 'powernow_k8']
      .map((module) => `blacklist ${module}\n`)
      .join(''),
  },
];

/** Of no use in the lab, and each costs emulated time at every boot. */
const maskedUnits = [
  'modprobe@drm.service',
  'modprobe@efi_pstore.service',
  'proc-sys-fs-binfmt_misc.automount',
  'systemd-binfmt.service',
  'systemd-hibernate-clear.service',
  'systemd-network-generator.service',
  'systemd-pcrmachine.service',
  'systemd-udev-load-credentials.service',
];

/** Links in the guest, path to target. */
const links: Readonly<Record<string, string>> = {
  '/etc/systemd/system/multi-user.target.wants/lab-ready.service': '/etc/systemd/system/lab-ready.service',
  '/etc/systemd/system/multi-user.target.wants/systemd-networkd.service':
    '/usr/lib/systemd/system/systemd-networkd.service',
  '/etc/systemd/system/sockets.target.wants/systemd-networkd.socket':
    '/usr/lib/systemd/system/systemd-networkd.socket',
  '/etc/systemd/system-generators/systemd-gpt-auto-generator': '/dev/null',
  ...Object.fromEntries(maskedUnits.map((unit) => [`/etc/systemd/system/${unit}`, '/dev/null'])),
};

/** All that makes the image of a tree: an image is stale when this differs. */
export const imageRecipe = { diskSize, files, links, initScript };

export interface VmImage {
  readonly kernel: string;
  readonly initrd: string;
  /** A raw, sparse ext4 disk. */
  readonly disk: string;
}

/** The files of the image in its folder. */
export function imageFiles(folder: string): VmImage {
  return {
    kernel: join(folder, 'vmlinux'),
    initrd: join(folder, 'initrd'),
    disk: join(folder, 'golden.raw'),
  };
}

/** Makes disk, kernel and initrd from a root tree, which stays as it is; needs root to read it, but no mount and no loop device. */
export async function buildImage(treePath: string, folder: string): Promise<VmImage> {
  const image = imageFiles(folder);
  const root = join(folder, 'root');
  // Hard links: nothing below writes into a file, everything is put in place anew.
  await execa('cp', ['--archive', '--link', treePath, root]);
  for (const file of files) await writeGuestFile(root, file);
  for (const [path, target] of Object.entries(links)) await replaceByLink(join(root, path), target);

  await writeFile(
    image.kernel,
    extractKernel(await readFile(await onlyMatch(join(root, 'boot'), /^vmlinuz-/))),
  );
  await writeFile(image.initrd, await makeInitialRamDisk(root));
  // An inode table left for later would be written by the running guest, in every overlay.
  const noLaterWork = ['-E', 'lazy_itable_init=0,lazy_journal_init=0'];
  await execa('mke2fs', ['-q', '-F', '-t', 'ext4', ...noLaterWork, '-d', root, image.disk, diskSize]);
  await rm(root, { recursive: true });
  return image;
}

async function makeInitialRamDisk(root: string): Promise<Buffer> {
  const modules = join(root, 'usr/lib/modules');
  const driver = join(await onlyMatch(modules, /./), 'kernel/drivers/block/virtio_blk.ko.xz');
  const unpacked = await execa('xz', ['--decompress', '--stdout', driver], { encoding: 'buffer' });
  return initialRamDisk({
    busybox: await readFile(join(root, 'usr/bin/busybox')),
    diskDriver: Buffer.from(unpacked.stdout),
  });
}

async function onlyMatch(folder: string, pattern: RegExp): Promise<string> {
  const matches = (await readdir(folder)).filter((name) => pattern.test(name));
  const [match] = matches;
  if (match === undefined || matches.length > 1)
    throw new Error(`expected one ${pattern} in ${folder}, found ${matches.length}: ${matches.join(' ')}`);
  return join(folder, match);
}

async function replaceByLink(path: string, target: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await rm(path, { force: true });
  await symlink(target, path);
}
