import type { PatchedFile } from './patches.ts';
import { sha256 } from './release.ts';
import { effectiveDirectives } from './systemd.ts';

/**
 * SHA-256 of all that the engine gets: the unit's directives that have an effect (they hold arguments,
 * environment, mounts and image) and the bytes of the patched files. Comments and descriptions do not count.
 * The unit must not hold the identity itself yet.
 */
export function engineIdentityOf(unit: string, patchedFiles: readonly PatchedFile[]): string {
  const patched = patchedFiles.map(({ target, patchedSha256 }) => `${target} ${patchedSha256}`);
  return sha256([...effectiveDirectives(unit), ...patched].join('\n'));
}
