import { parsePatch, type StructuredPatch } from 'diff';
import type { Problem } from './problems.ts';
import type { Release } from './release.ts';
import type { ShapeConfig } from './shape.ts';

type PatchConfig = ShapeConfig['patches'][number];
export type PatchedFile = Release['patches'][number];

/**
 * The shape's diffs by the file that they change, each in its configured order. `texts` holds the diffs by
 * their path below `patches/`.
 */
export function patchedFilesOf(
  patches: readonly PatchConfig[],
  texts: ReadonlyMap<string, string>,
  file: string,
): { readonly files: readonly PatchedFile[]; readonly problems: readonly Problem[] } {
  const files = new Map<string, PatchedFile>();
  const problems: Problem[] = [];
  for (const [index, patch] of patches.entries()) {
    const complain = (field: string, value: string, limit: string, remedy: string): number =>
      problems.push({ file, key: `slot:shape.patches[${index}].${field}`, value, limit, remedy });
    const text = texts.get(patch.diff);
    if (text === undefined) {
      complain('diff', patch.diff, 'must be a file below patches/', 'put the diff there');
      continue;
    }
    const fault = faultOf(text, patch.target);
    if (fault !== undefined)
      complain('diff', patch.diff, fault, 'make the diff anew with diff -u or git diff');
    const earlier = files.get(patch.target);
    if (earlier !== undefined && earlier.patchedSha256 !== patch.baseSha256) {
      complain(
        'baseSha256',
        patch.baseSha256,
        `must be ${earlier.patchedSha256}, what the earlier diffs make of ${patch.target}`,
        'correct the order of the patches, or the hash',
      );
    }
    files.set(patch.target, {
      target: patch.target,
      baseSha256: earlier?.baseSha256 ?? patch.baseSha256,
      patchedSha256: patch.patchedSha256,
      diffs: [...(earlier?.diffs ?? []), { name: patch.diff, text }],
    });
  }
  return { files: [...files.values()], problems };
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
