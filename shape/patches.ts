import { parsePatch, type StructuredPatch } from 'diff';
import type { Problem } from './problems.ts';
import type { Release } from './release.ts';
export type PatchedFile = Release['patches'][number];

/** Lines above the diff that say what it changes: before it, and after it, the target has these hashes. */
interface PatchHeader {
  /** Absolute path of the file inside the image. */
  readonly target: string;
  readonly baseSha256: string;
  readonly patchedSha256: string;
}

const headerLines = {
  target: /^Target: (\/\S+)$/m,
  baseSha256: /^Base-SHA256: ([0-9a-f]{64})$/m,
  patchedSha256: /^Patched-SHA256: ([0-9a-f]{64})$/m,
};

/**
 * The shape's diffs by the file that they change, each in its configured order. `texts` holds the diffs by
 * their path below `patches/`.
 */
export function patchedFilesOf(
  patches: readonly string[],
  texts: ReadonlyMap<string, string>,
  file: string,
): { readonly files: readonly PatchedFile[]; readonly problems: readonly Problem[] } {
  const files = new Map<string, PatchedFile>();
  const problems: Problem[] = [];
  for (const [index, name] of patches.entries()) {
    const complain = (limit: string, remedy: string): number =>
      problems.push({ file, key: `slot:shape.patches[${index}]`, value: name, limit, remedy });
    const text = texts.get(name);
    if (text === undefined) {
      complain('must be a file below patches/', 'put the diff there');
      continue;
    }
    const header = headerOf(text);
    if (header === undefined) {
      complain(
        'must say above its diff what it changes',
        'add the lines "Target: <absolute path in the image>", "Base-SHA256: …" and "Patched-SHA256: …"',
      );
      continue;
    }
    const { target, baseSha256, patchedSha256 } = header;
    const fault = faultOf(text, target);
    if (fault !== undefined) complain(fault, 'make the diff anew with diff -u or git diff');
    const earlier = files.get(target);
    if (earlier !== undefined && earlier.patchedSha256 !== baseSha256) {
      complain(
        `must have Base-SHA256 ${earlier.patchedSha256}, what the earlier diffs make of ${target}`,
        'correct the order of the patches, or the hash',
      );
    }
    files.set(target, {
      target,
      baseSha256: earlier?.baseSha256 ?? baseSha256,
      patchedSha256,
      diffs: [...(earlier?.diffs ?? []), { name, text }],
    });
  }
  return { files: [...files.values()], problems };
}

/** Undefined: a line is missing. */
function headerOf(text: string): PatchHeader | undefined {
  const lineOf = (line: RegExp): string | undefined => line.exec(text)?.[1];
  const target = lineOf(headerLines.target);
  const baseSha256 = lineOf(headerLines.baseSha256);
  const patchedSha256 = lineOf(headerLines.patchedSha256);
  if (target === undefined || baseSha256 === undefined || patchedSha256 === undefined) return undefined;
  return { target, baseSha256, patchedSha256 };
}

/** Why the text is not a unified diff of this one file; undefined when it is. */
function faultOf(text: string, target: string): string | undefined {
  let parts: readonly StructuredPatch[];
  try {
    parts = parsePatch(text);
  } catch (error) {
    return `must be a unified diff: ${error instanceof Error ? error.message : String(error)}`;
  }
  const [part, ...further] = parts.filter(({ hunks }) => hunks.length > 0);
  if (part === undefined) return 'must be a unified diff with at least one hunk: it is prose';
  if (part.hunks.some(({ oldStart }) => Number.isNaN(oldStart))) {
    return 'must be a unified diff: a hunk has no line numbers';
  }
  if (further.length > 0) return 'must change one file';
  const named = [part.oldFileName, part.newFileName].map((name) => name?.replace(/^[ab]\//, ''));
  const foreign = named.find((name) => name === undefined || !`/${target}`.endsWith(`/${name}`));
  return named.includes(undefined) || foreign !== undefined
    ? `must change ${target}: it names ${foreign ?? 'no file'}`
    : undefined;
}
