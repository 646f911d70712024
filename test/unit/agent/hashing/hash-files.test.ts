import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type HashResult, hashFiles } from '../../../../agent/hashing/hash-files.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slot-hash-files-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

const at = (name: string) => join(folder, name);

async function hashed(names: readonly string[]): Promise<Record<string, HashResult>> {
  const results: Record<string, HashResult> = {};
  await hashFiles(names.map(at), (path, result) => {
    results[path.slice(folder.length + 1)] = result;
  }).ended;
  return results;
}

it('gives what sha256sum gives, for files around the size of a read', async () => {
  const read = 512 * 1024;
  const sizes = [0, 1, read - 1, read, read + 1, 3 * read + 17];
  for (const size of sizes) writeFileSync(at(String(size)), randomBytes(size));
  const names = sizes.map(String);
  const expected = execFileSync('sha256sum', names, { cwd: folder, encoding: 'utf8' });
  const results = await hashed(names);
  for (const line of expected.trim().split('\n')) {
    const [sha256 = '', name = ''] = line.split('  ');
    expect(results[name]).toEqual({ sha256 });
  }
});

it('counts the bytes that it has read', async () => {
  for (const name of ['a', 'b', 'c']) writeFileSync(at(name), Buffer.alloc(100_000));
  const hashing = hashFiles(['a', 'b', 'c'].map(at), () => {});
  await hashing.ended;
  expect(hashing.bytesRead()).toBe(300_000);
  expect(hashing.current()).toEqual([]);
});

it('ends with an error for each that is no file, waits for none, and reads the rest', async () => {
  execFileSync('mkfifo', [at('pipe')]);
  mkdirSync(at('folder'));
  writeFileSync(at('sound'), 'x');
  expect(await hashed(['pipe', 'folder', 'absent', 'sound'])).toEqual({
    pipe: { error: 'is no regular file' },
    folder: { error: 'is no regular file' },
    absent: { error: expect.stringContaining('ENOENT') },
    sound: { sha256: createHash('sha256').update('x').digest('hex') },
  });
});

it('of no files ends at once', async () => {
  expect(await hashed([])).toEqual({});
});
