import { constants, zstdDecompressSync } from 'node:zlib';

const zstdMagic = 0xfd2fb528;
const elfMagic = 0x464c457f;

/**
 * Takes the uncompressed kernel (an ELF file with a PVH entry, which QEMU starts directly) out of a bzImage:
 * under software emulation the kernel's own decompression would cost seconds at every boot.
 * Throws unless the payload is zstd, as Debian's is.
 */
export function extractKernel(bzImage: Buffer): Buffer {
  const setupSectors = bzImage.readUInt8(0x1f1);
  const payloadOffset = bzImage.readUInt32LE(0x248);
  const payloadLength = bzImage.readUInt32LE(0x24c);
  const start = (setupSectors + 1) * 512 + payloadOffset;
  // The payload's last 4 bytes are the unpacked size, not zstd data.
  const payload = bzImage.subarray(start, start + payloadLength - 4);
  if (payload.length < 4 || payload.readUInt32LE(0) !== zstdMagic)
    throw new Error('the kernel image has no zstd payload: expected a bzImage as Debian 13 builds it');
  const kernel = zstdDecompressSync(payload, { params: { [constants.ZSTD_d_windowLogMax]: 27 } });
  if (kernel.readUInt32LE(0) !== elfMagic)
    throw new Error('the unpacked kernel is no ELF file: it cannot be started directly');
  return kernel;
}

export interface ArchiveEntry {
  readonly path: string;
  /** File type and permissions as in `st_mode`. */
  readonly mode: number;
  /** Content of a file or target of a symbolic link; default empty. */
  readonly content?: Buffer;
}

/** Writes a cpio archive (format newc), the only one the kernel unpacks as its first root file system. */
export function cpioArchive(entries: readonly ArchiveEntry[]): Buffer {
  const trailer: ArchiveEntry = { path: 'TRAILER!!!', mode: 0 };
  return Buffer.concat([...entries, trailer].flatMap((entry, index) => cpioRecord(entry, index + 1)));
}

function cpioRecord(entry: ArchiveEntry, inode: number): Buffer[] {
  const name = Buffer.from(`${entry.path}\0`);
  const content = entry.content ?? Buffer.alloc(0);
  const fields = [inode, entry.mode, 0, 0, 1, 0, content.length, 0, 0, 0, 0, name.length, 0];
  const header = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`;
  return [padToFour(Buffer.concat([Buffer.from(header), name])), padToFour(content)];
}

function padToFour(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
}

const directory = 0o040755;
const program = 0o100755;
const symbolicLink = 0o120777;

export const initScript = `#!/bin/sh
b=/bin/busybox
$b mount -t devtmpfs devtmpfs /dev
$b insmod /virtio_blk.ko
tries=0
while [ ! -b /dev/vda ] && [ $tries -lt 200 ]; do $b sleep 0.05; tries=$((tries + 1)); done
$b mount -t ext4 -o rw,noatime /dev/vda /root || { echo "no root file system on /dev/vda" >/dev/console; $b poweroff -f; }
$b mount --move /dev /root/dev
exec $b switch_root /root /sbin/init
`;

/** The first root file system: busybox, the disk's driver, and a script that mounts the disk and hands over. */
export function initialRamDisk(parts: { busybox: Buffer; diskDriver: Buffer }): Buffer {
  return cpioArchive([
    ...['bin', 'dev', 'root'].map((path) => ({ path, mode: directory })),
    { path: 'bin/busybox', mode: program, content: parts.busybox },
    { path: 'bin/sh', mode: symbolicLink, content: Buffer.from('busybox') },
    { path: 'virtio_blk.ko', mode: program, content: parts.diskDriver },
    { path: 'init', mode: program, content: Buffer.from(initScript) },
  ]);
}
