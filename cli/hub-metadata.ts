import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import * as z from 'zod';
import { jsonOrUndefined } from '../shape/json.ts';
import type { HubFile } from '../shape/payload-request.ts';
import { UsageError } from './usage.ts';

/** Larger ones are weights, not what is said of them. */
const mostBytes = 16 * 2 ** 20;

const forms =
  'the records of a download (.cache/huggingface/download), pointers of git-lfs, the answer of the hub’s API as JSON, ' +
  'or lines of sha256sum or git lfs ls-files --long';

/**
 * What a hub's records say of the files of a payload: of one file with records, or of a folder with one record each.
 *
 * @throws UsageError where there is nothing of a known form
 */
export function hubFilesAt(path: string): readonly HubFile[] {
  const files = statSync(path, { throwIfNoEntry: false })?.isDirectory()
    ? filesBelow(path)
    : [basename(path)];
  const folder = files.length === 1 && files[0] === basename(path) ? join(path, '..') : path;
  const found = files.flatMap((name) => hubFilesIn(name, textAt(join(folder, name))));
  if (found.length === 0) throw new UsageError(`${path} is none of: ${forms}`);
  const twice = found.find(({ name }, index) => found.findIndex((other) => other.name === name) !== index);
  if (twice !== undefined) throw new UsageError(`${path} speaks of ${twice.name} twice`);
  return found;
}

/** What a file's text says, by its form; nothing where it is of no known one. `name`: its path below the folder. */
export function hubFilesIn(name: string, text: string): readonly HubFile[] {
  const readings = [downloadRecord, lfsPointer, apiAnswer, hashLines];
  for (const reading of readings) {
    const found = reading(name, text);
    if (found.length > 0) return found;
  }
  return [];
}

/** Of huggingface_hub: commit, entity tag, time. The tag of a file in LFS is its SHA-256, of another git's hash. */
function downloadRecord(name: string, text: string): readonly HubFile[] {
  if (!name.endsWith('.metadata')) return [];
  const [commit = '', tag = ''] = text.split(/\r?\n/);
  if (!/^[0-9a-f]{40}$/.test(commit)) return [];
  const file = name.slice(0, -'.metadata'.length).replace(/^(?:.*\/)?\.cache\/huggingface\/download\//, '');
  if (/^[0-9a-f]{64}$/.test(tag)) return [{ name: file, sha256: tag }];
  return /^[0-9a-f]{40}$/.test(tag) ? [{ name: file, gitBlob: tag }] : [];
}

function lfsPointer(name: string, text: string): readonly HubFile[] {
  if (!text.startsWith('version https://git-lfs.github.com/spec/')) return [];
  const [, sha256] = /^oid sha256:([0-9a-f]{64})\r?$/m.exec(text) ?? [];
  const [, size] = /^size (\d{1,15})\r?$/m.exec(text) ?? [];
  return sha256 === undefined || size === undefined ? [] : [{ name, sha256, size: Number(size) }];
}

const lfsSchema = z.object({ oid: z.string().optional(), sha256: z.string().optional() });
const apiFileSchema = z.object({
  path: z.string().optional(),
  rfilename: z.string().optional(),
  type: z.string().optional(),
  size: z.int().optional(),
  oid: z.string().optional(),
  blobId: z.string().optional(),
  lfs: lfsSchema.nullish(),
});

/** `/api/models/…/tree/main?recursive=true`, and `/api/models/…?blobs=true`. */
function apiAnswer(_name: string, text: string): readonly HubFile[] {
  const list = z.union([
    z.array(apiFileSchema),
    z.object({ siblings: z.array(apiFileSchema) }).transform(({ siblings }) => siblings),
  ]);
  const answer = list.safeParse(jsonOrUndefined(text));
  if (!answer.success) return [];
  return answer.data.flatMap(({ path, rfilename, type, size, oid, blobId, lfs }) => {
    const name = path ?? rfilename;
    if (name === undefined || type === 'directory') return [];
    const sha256 = lfs?.oid ?? lfs?.sha256;
    const gitBlob = sha256 === undefined ? (oid ?? blobId) : undefined;
    if (sha256 === undefined && gitBlob === undefined) return [];
    return [
      { name, ...(sha256 && { sha256 }), ...(gitBlob && { gitBlob }), ...(size !== undefined && { size }) },
    ];
  });
}

/** Of `sha256sum`, and of `git lfs ls-files --long`. All lines but comments must be of the form. */
function hashLines(_name: string, text: string): readonly HubFile[] {
  const lines = text.split(/\r?\n/).filter((line) => line !== '' && !line.startsWith('#'));
  const found = lines.map((line) => /^([0-9a-f]{64}) (?:[*-] | |\*)(.+)$/.exec(line));
  if (found.includes(null)) return [];
  return found.map((parts) => ({ name: (parts?.[2] ?? '').replace(/^\.\//, ''), sha256: parts?.[1] ?? '' }));
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.split('/').includes('.git') && isFile(join(folder, name)))
    .sort();
}

/** A link that leads nowhere, or back to itself, is none. */
function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function textAt(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) throw new UsageError(`${path} is not there`);
  return found.isFile() && found.size <= mostBytes ? readFileSync(path, 'utf8') : '';
}
