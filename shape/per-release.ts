import type { Release } from './release.ts';

/** The function, reading each release once: many rules look at the same of it. */
export function perRelease<T>(read: (release: Release) => T): (release: Release) => T {
  const known = new WeakMap<Release, { readonly value: T }>();
  return (release) => {
    const found = known.get(release) ?? { value: read(release) };
    known.set(release, found);
    return found.value;
  };
}
