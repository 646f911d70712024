import { manifestIdOf } from './payload-manifest.ts';
import type { SealedTree } from './payload-request.ts';
import type { Release } from './release.ts';

/** All that a release mounts and never writes. */
export function treesOf({
  payload,
  mounts = [],
}: Pick<Release, 'payload' | 'mounts'>): readonly SealedTree[] {
  return [
    { root: payload.folder, manifest: payload.manifest, expected: payload.expected },
    ...mounts.map(({ source, manifest, expected }) => ({ root: source, manifest, expected })),
  ];
}

/** Ids of manifests, by the paths on the host of what they seal. */
export type Seals = Readonly<Record<string, string>>;

export function sealsOf(release: Pick<Release, 'payload' | 'mounts'>): Seals {
  return Object.fromEntries(
    treesOf(release).flatMap(({ root, manifest }) =>
      manifest === undefined ? [] : [[root, manifestIdOf(manifest)]],
    ),
  );
}

/** Whether something that is sealed in both was replaced between them: an engine of the one has not loaded the other. */
export function differInSeals(one: Seals, other: Seals): boolean {
  return Object.entries(one).some(([root, id]) => Object.hasOwn(other, root) && other[root] !== id);
}
