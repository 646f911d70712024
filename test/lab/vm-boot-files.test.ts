import { zstdCompressSync } from 'node:zlib';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { cpioArchive, extractKernel } from '../../lab/vm/boot-files.ts';

const elf = Buffer.concat([Buffer.from('\x7fELF', 'latin1'), Buffer.alloc(5000, 1)]);

/** A kernel image as Debian's is laid out: set-up sectors, code that unpacks, payload, unpacked size. */
function bzImage(payload: Buffer): Buffer {
  const setUpSectors = 3;
  const payloadOffset = 100;
  const size = Buffer.alloc(4);
  size.writeUInt32LE(elf.length);
  const image = Buffer.concat([
    Buffer.alloc((setUpSectors + 1) * 512 + payloadOffset),
    payload,
    size,
    Buffer.alloc(300, 9),
  ]);
  image.writeUInt8(setUpSectors, 0x1f1);
  image.writeUInt32LE(payloadOffset, 0x248);
  image.writeUInt32LE(payload.length + 4, 0x24c);
  return image;
}

describe('the kernel in a bzImage', () => {
  test('comes out as it went in', () => {
    expect(extractKernel(bzImage(zstdCompressSync(elf))).equals(elf)).toBe(true);
  });

  test('is refused when it is packed in another way', () => {
    expect(() => extractKernel(bzImage(Buffer.from('\x1f\x8b\x08 gzip', 'latin1')))).toThrow(
      'no zstd payload',
    );
  });

  test('is refused when the payload says it is empty', () => {
    expect(() => extractKernel(bzImage(Buffer.alloc(0)))).toThrow('no zstd payload');
  });

  test('is refused when it is no program that can be started directly', () => {
    expect(() => extractKernel(bzImage(zstdCompressSync(Buffer.from('MZ: not ELF'))))).toThrow('no ELF file');
  });

  test('is refused when the file is cut off', () => {
    const whole = bzImage(zstdCompressSync(elf));
    expect(() => extractKernel(whole.subarray(0, (3 + 1) * 512 + 120))).toThrow();
  });
});

const cpio = await execa('cpio', ['--version'], { reject: false });

test.skipIf(cpio.failed)('the archive is one that cpio reads, contents and links unchanged', async () => {
  const archive = cpioArchive([
    { path: 'bin', mode: 0o040755 },
    { path: 'bin/odd', mode: 0o100755, content: Buffer.from('five!') },
    { path: 'bin/link', mode: 0o120777, content: Buffer.from('odd') },
  ]);
  const list = await execa('cpio', ['--list', '--verbose', '--quiet'], { input: archive });
  expect(list.stdout.split('\n').map((line) => line.replace(/\s+/g, ' '))).toEqual([
    expect.stringMatching(/^drwxr-xr-x .* bin$/),
    expect.stringMatching(/^-rwxr-xr-x .* 5 .* bin\/odd$/),
    expect.stringMatching(/^lrwxrwxrwx .* bin\/link -> odd$/),
  ]);
  const content = await execa('cpio', ['--extract', '--to-stdout', '--quiet', 'bin/odd'], { input: archive });
  expect(content.stdout).toBe('five!');
});
