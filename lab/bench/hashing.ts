import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, open, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { hashFiles } from '../../agent/hashing/hash-files.ts';
import { HashMemo } from '../../agent/hashing/hash-memo.ts';
import { payloadTree } from '../../agent/hashing/payload-tree.ts';
import { verifyTree } from '../../agent/hashing/sealed-payload.ts';
import { type Outside, realOutside } from '../../agent/outside.ts';
import type { PayloadManifest } from '../../shape/payload-manifest.ts';
import { byTurns } from './by-turns.ts';
import type { Measure } from './measure.ts';

const mebibyte = 2 ** 20;

/** As many as the recorded GLM payload has shards, one twice as large as the others; they fit into the page cache. */
const [shards, shardBytes] = [34, 48 * mebibyte];

/** Hashing of files that are cached, against one stream of `sha256sum` for each core: at least 0.9 times as fast. */
export function measureHashingStreams(rounds: number): Promise<Measure> {
  return withFiles(async (paths) => {
    const cores = availableParallelism();
    const { product, floor } = await byTurns(
      rounds,
      () => hashAll(paths),
      // One stream reads all; as many as there are cores would take that part of its time.
      async () => void (await execa('sha256sum', paths)),
    );
    return {
      title: `hashing of ${shards} cached files, against sha256sum on ${cores} cores`,
      product: { what: 'hashFiles', seconds: product },
      floor: {
        what: `one sha256sum, its time by ${cores}`,
        seconds: floor.map((seconds) => seconds / cores),
      },
      limit: { kind: 'ratio', atMost: 1.11 },
    };
  });
}

/** The same against what an operator would write: never slower. */
export function measureHashingXargs(rounds: number): Promise<Measure> {
  return withFiles(async (paths) => {
    const cores = String(availableParallelism());
    const { product, floor } = await byTurns(
      rounds,
      () => hashAll(paths),
      async () =>
        void (await execa('xargs', ['-P', cores, '-n', '1', 'sha256sum'], { input: paths.join('\n') })),
    );
    return {
      title: `hashing of ${shards} cached files, against xargs`,
      product: { what: 'hashFiles', seconds: product },
      floor: { what: `xargs -P ${cores} -n 1 sha256sum`, seconds: floor },
      limit: { kind: 'ratio', atMost: 1 },
    };
  });
}

/** A second verification of files of the recorded sizes, none of which was touched, against `find` over them. */
export async function measureReverification(rounds: number): Promise<Measure> {
  const folder = await mkdtemp(join(tmpdir(), 'slot-bench-'));
  try {
    const payload = join(folder, 'payload');
    await mkdir(payload);
    // 170 GiB in 36 files, and what lies beside them; sparse.
    const names = Array.from({ length: 36 }, (_, index) => `model-${index}.safetensors`);
    for (const name of names) await sparse(join(payload, name), Math.floor((170 * 2 ** 30) / names.length));
    for (let index = 0; index < 20; index += 1)
      await writeFile(join(payload, `tokenizer-${index}.json`), '{}');
    const outside: Outside = {
      ...realOutside,
      readText: (path) => realOutside.readText(stateIn(folder, path)),
      writeDurably: (path, text) => realOutside.writeDurably(stateIn(folder, path), text),
      makeFolder: (path) => realOutside.makeFolder(stateIn(folder, path)),
    };
    const manifest: PayloadManifest = await remembered(outside, payload);
    const say = async (line: string) => {
      throw new Error(`something was read: ${line}`);
    };
    const { product, floor } = await byTurns(
      rounds,
      async () => void (await verifyTree({ outside, service, say }, { root: payload, manifest })),
      async () => void (await execa('find', [payload, '-type', 'f', '-printf', '%i %s %T@ %C@\\n'])),
    );
    return {
      title: `second verification of ${manifest.length} files, 170 GiB, none touched`,
      product: { what: 'verifyTree', seconds: product },
      floor: { what: 'find -printf', seconds: floor },
      limit: { kind: 'difference', atMostSeconds: 1 },
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const service = 'bench';

const stateIn = (folder: string, path: string) =>
  path.startsWith('/var/lib/slot') ? join(folder, path) : path;

/** As if all had been read before: what it hashes to plays no part in the second look. */
async function remembered(outside: Outside, root: string): Promise<PayloadManifest> {
  const memo = await HashMemo.open(outside, service, root);
  const files = await payloadTree(outside, root);
  const manifest = files.map(({ name, status }) => ({
    name,
    size: status.size,
    sha256: createHash('sha256').update(name).digest('hex'),
  }));
  for (const [index, { name, status }] of files.entries()) {
    memo.remember(name, status, manifest[index]?.sha256 ?? '', Date.now() + 1000);
  }
  await memo.save();
  return manifest;
}

async function hashAll(paths: readonly string[]): Promise<void> {
  const errors: string[] = [];
  await hashFiles(paths, (path, result) => {
    if ('error' in result) errors.push(`${path}: ${result.error}`);
  }).ended;
  if (errors.length > 0) throw new Error(errors.join('; '));
}

async function withFiles(measure: (paths: readonly string[]) => Promise<Measure>): Promise<Measure> {
  const folder = await mkdtemp(join(tmpdir(), 'slot-bench-'));
  try {
    const block = randomBytes(mebibyte);
    const paths: string[] = [];
    for (let index = 0; index < shards; index += 1) {
      const path = join(folder, `model-${index}`);
      const file = await open(path, 'w');
      for (let size = 0; size < shardBytes * (index === 0 ? 2 : 1); size += mebibyte) await file.write(block);
      await file.close();
      await readFile(path);
      paths.push(path);
    }
    return await measure(paths);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function sparse(path: string, bytes: number): Promise<void> {
  await writeFile(path, '');
  await truncate(path, bytes);
}
