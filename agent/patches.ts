import { namesOf } from '../shape/names.ts';
import { type Release, sha256 } from '../shape/release.ts';
import type { Outside } from './outside.ts';
import { runThrowAway } from './throw-away.ts';

/**
 * Applies each patch to the pristine file of the pinned image, without fuzz, and keeps the result under the
 * name of its hash. Throws with the name of the patch that does not fit; nothing of the image is changed.
 */
export async function checkPatches(outside: Outside, release: Release): Promise<void> {
  for (const patched of release.patches) {
    const result = await runThrowAway(outside, {
      image: release.image,
      entrypoint: 'cat',
      arguments: [patched.target],
    });
    if (result.exitCode !== 0) {
      throw new Error(`${patched.target} cannot be read in the image: ${result.stderr.trim()}`);
    }
    if (sha256(result.stdout) !== patched.baseSha256) {
      throw new Error(
        `${patched.target} in the image has sha256 ${sha256(result.stdout)}, the patch was made for ${patched.baseSha256}`,
      );
    }
    const path = namesOf(release.service).patchedFile(patched.patchedSha256, patched.target);
    const folder = path.slice(0, path.lastIndexOf('/'));
    const working = `${folder}.${process.pid}`;
    await outside.makeFolder(working);
    try {
      await outside.writeDurably(`${working}/file`, result.stdout);
      for (const diff of patched.diffs) {
        const applied = await outside.run(
          'patch',
          [
            '--fuzz=0',
            '--batch',
            '--forward',
            '--no-backup-if-mismatch',
            '--reject-file=-',
            `${working}/file`,
          ],
          { input: diff.text },
        );
        if (applied.exitCode !== 0) {
          throw new Error(`${diff.name} does not apply to ${patched.target}: ${applied.stdout.trim()}`);
        }
      }
      const text = (await outside.readText(`${working}/file`)) ?? '';
      if (sha256(text) !== patched.patchedSha256) {
        throw new Error(
          `${patched.target} has sha256 ${sha256(text)} after its patches, wanted ${patched.patchedSha256}`,
        );
      }
      await outside.makeFolder(folder);
      await outside.writeDurably(path, text);
    } finally {
      await outside.removeDurably(working);
    }
  }
}
