import type { Release } from '../release.ts';

/** All rendered text of a release, each with where it stands. */
export function textsOf(release: Release): readonly (readonly [place: string, text: string])[] {
  return [
    ...Object.entries(release.environment),
    ...release.arguments.map((word, index) => [`argument ${index + 1}`, word] as const),
    ['the unit', release.unit],
    ['the target', release.target],
  ];
}
