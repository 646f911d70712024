import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { execa } from 'execa';

/** A layer of an OCI image, as its manifest and its configuration name it. */
export interface Layer {
  /** The compressed archive. */
  readonly path: string;
  /** `sha256:…` of the compressed archive. */
  readonly digest: string;
  /** Bytes of the compressed archive. */
  readonly size: number;
  /** `sha256:…` of the archive before compression. */
  readonly diffId: string;
}

/** Packs a tree into `<target>.tar.gz`, described in `<target>.json`; the same tree always gives the same bytes. */
export async function packLayer(tree: string, target: string): Promise<Layer> {
  // Sorted, owned by root, all times zero; a name of its own for each entry, without the root folder.
  const packed = await execa(
    'tar',
    [
      '--create',
      '--format=gnu',
      '--sort=name',
      '--mtime=@0',
      '--owner=0',
      '--group=0',
      '--numeric-owner',
      '--transform=s,^\\./,,',
      '--exclude=./dev/*',
      '-C',
      tree,
      '.',
    ],
    { encoding: 'buffer', maxBuffer: 1 << 28 },
  );
  const compressed = gzipSync(packed.stdout);
  const layer: Layer = {
    path: `${target}.tar.gz`,
    digest: digestOf(compressed),
    size: compressed.length,
    diffId: digestOf(packed.stdout),
  };
  await writeFile(layer.path, compressed);
  await writeFile(`${target}.json`, JSON.stringify(layer));
  return layer;
}

export async function readLayer(target: string): Promise<Layer> {
  return { ...(JSON.parse(await readFile(`${target}.json`, 'utf8')) as Layer), path: `${target}.tar.gz` };
}

export function digestOf(data: Uint8Array | string): string {
  return `sha256:${createHash('sha256').update(data).digest('hex')}`;
}
