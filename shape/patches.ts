import { posix } from 'node:path';
import { type PatchFile, parsePatchFile } from './patch-file.ts';
import { ConfigurationError, type Problem, shorten } from './problems.ts';
import { type Release, sha256 } from './release.ts';

export type PatchedFile = Release['patches'][number];

/** Below `patches/`: the patch files' own hashes, as `sha256sum` writes and checks them. */
export const patchHashesFile = 'SHA256SUMS';

/**
 * Hashes by the files' paths below `patches/`, as `sha256sum` writes them.
 *
 * @throws ConfigurationError with every other line: what is not read would be lost when the next patch is recorded
 */
export function parsePatchHashes(text: string): ReadonlyMap<string, string> {
  const hashes = new Map<string, string>();
  const problems: Problem[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const [, hash, name] = /^([0-9a-f]{64}) [ *](.+)$/.exec(line) ?? [];
    const complain = (limit: string, remedy: string): void => {
      const key = `line ${index + 1}`;
      problems.push({
        file: `patches/${patchHashesFile}`,
        key,
        value: shorten(line.trimEnd()),
        limit,
        remedy,
      });
    };
    if (line === '') continue;
    if (hash === undefined || name === undefined || posix.normalize(name) !== name) {
      complain(
        line.endsWith('\r') ? 'must have a plain line end, it has CRLF' : 'must be a hash and a plain path',
        `bring it back as it was (git log -p patches/${patchHashesFile}), or write it as sha256sum does: 64 digits, two blanks, the path below patches/`,
      );
    } else if (hashes.has(name)) {
      complain('must name each file once', 'take out the one that is wrong: sha256sum says which');
    } else hashes.set(name, hash);
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return hashes;
}

export function patchHashesText(hashes: ReadonlyMap<string, string>): string {
  const sorted = [...hashes].sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([name, hash]) => `${hash}  ${name}\n`).join('');
}

interface NamedPatch extends PatchFile {
  readonly name: string;
  readonly text: string;
  /** In the shape's list. */
  readonly index: number;
}

/**
 * The shape's diffs by the file that they change, each in its configured order. `texts` holds the diffs by
 * their path below `patches/`, `recorded` the hashes that these files must have; undefined: none are on record.
 */
export function patchedFilesOf(
  patches: readonly string[],
  texts: ReadonlyMap<string, string>,
  file: string,
  recorded?: ReadonlyMap<string, string>,
): { readonly files: readonly PatchedFile[]; readonly problems: readonly Problem[] } {
  const problems: Problem[] = [];
  const complain = (index: number, limit: string, remedy: string): void => {
    const value = patches[index];
    problems.push({ file, key: `slot:shape.patches[${index}]`, value, limit, remedy });
  };
  const read: NamedPatch[] = [];
  for (const [index, name] of patches.entries()) {
    if (posix.normalize(name) !== name || name.startsWith('/')) {
      complain(
        index,
        'must be the plain path of a file below patches/',
        `write ${posix.normalize(name).replace(/^\/+/, '')}`,
      );
      continue;
    }
    const text = texts.get(name);
    if (text === undefined) {
      complain(index, 'must be a file below patches/', 'put the diff there');
      continue;
    }
    if (patches.indexOf(name) !== index) {
      complain(index, 'must be named once', 'take the second one out');
      continue;
    }
    const change = recorded && changeSinceRecord(name, text, recorded);
    if (change !== undefined) complain(index, ...change);
    const { patch, faults = [] } = parsePatchFile(text);
    for (const { limit, remedy } of faults) complain(index, limit, remedy);
    if (patch !== undefined) read.push({ ...patch, name, text, index });
  }

  for (const { header, name, index } of read) {
    const other = header.supersedes.find((superseded) => patches.includes(superseded));
    if (other !== undefined) {
      complain(index, `must not stand beside ${other}, whose place ${name} takes`, `take ${other} out`);
    }
  }

  const files = new Map<string, PatchedFile>();
  for (const patch of read) {
    const { target, baseSha256, patchedSha256 } = patch.header;
    const earlier = files.get(target);
    if (earlier !== undefined && earlier.patchedSha256 !== baseSha256) {
      complain(
        patch.index,
        `must have Base-SHA256 ${earlier.patchedSha256}, what the earlier diffs make of ${target}`,
        orderRemedy(patch, read),
      );
    }
    files.set(target, {
      target,
      baseSha256: earlier?.baseSha256 ?? baseSha256,
      patchedSha256,
      diffs: [...(earlier?.diffs ?? []), { name: patch.name, text: patch.text }],
    });
  }
  return { files: [...files.values()], problems };
}

function changeSinceRecord(
  name: string,
  text: string,
  recorded: ReadonlyMap<string, string>,
): readonly [limit: string, remedy: string] | undefined {
  const accept = `to accept it: slot patch record ${name}`;
  const wanted = recorded.get(name);
  if (wanted === undefined) {
    return [`must be recorded in patches/${patchHashesFile}`, `read the patch; ${accept}`];
  }
  const actual = sha256(text);
  if (actual === wanted) return undefined;
  // What a reader puts in place of bytes that are no UTF-8: of a file that has it itself the hash is right.
  if (text.includes('\ufffd')) {
    return ['must be UTF-8, and as it was recorded', `save it as UTF-8; ${accept}`];
  }
  return [
    `must have the sha256 that patches/${patchHashesFile} records, ${wanted.slice(0, 12)}…, it has ${actual.slice(0, 12)}…: changed since it was recorded`,
    `see what changed (git log -p patches/${name}): a rename over the whole repository rewrites patches as well; ${accept}`,
  ];
}

/** Which order would do, where one does. */
function orderRemedy(patch: NamedPatch, all: readonly NamedPatch[]): string {
  const { target, baseSha256, patchedSha256 } = patch.header;
  const others = all.filter((other) => other !== patch && other.header.target === target);
  const before = others.find((other) => other.header.patchedSha256 === baseSha256);
  if (before !== undefined && before.index > patch.index) return `put ${before.name} before ${patch.name}`;
  const after = others.find((other) => other.header.baseSha256 === patchedSha256);
  if (after !== undefined && after.index < patch.index) return `put ${patch.name} before ${after.name}`;
  const twin = others.find((other) => other.header.baseSha256 === baseSha256);
  return twin === undefined
    ? 'correct the order of the patches, or the hash'
    : `${twin.name} was made for the same file as ${patch.name}: make one anew on top of the other, or take one out`;
}

export { applyExactly, type ExactDiff, type HunkFault, isContained, reversed } from './exact-diff.ts';
export {
  type PatchFault,
  type PatchFile,
  type PatchHeader,
  parsePatchFile,
  targetForm,
} from './patch-file.ts';
