import { identityLabel } from '../names.ts';
import type { Release } from '../release.ts';
import { mountsOf } from './mounts.ts';
import { textsOf } from './release-texts.ts';
import type { Rule } from './rule.ts';

/** What differs from one rendering to the next, by the words for it. */
const movingText: readonly (readonly [what: string, RegExp])[] = [
  ['a time', /\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d/],
  ['a time', /\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? .{3,12} \d\d:\d\d:\d\d/],
  ['a time', /\b20\d\d[01]\d[0-3]\dT\d{4,6}Z?\b/],
  ['a UUID', /(?<!GPU-)\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/i],
  ['a temporary path', /\/tmp\/tmp[._-]?\w{6,}/],
  ['an id of 64 digits', /\b[0-9a-f]{64}\b/],
];

export const noMovingText: Rule = {
  id: 'no-moving-text',
  severity: 'refuse',
  reason: 'a text that is another one each time makes every preview a cutover, and an outage',
  evidence: 'docs/architecture.md: the same shape renders to the same bytes',
  remedy: 'take it out; what the engine must know of its start it can ask the host',
  examine: ({ release }) => {
    const lasting = [...lastingHashes(release), ...lastingNames(release)];
    for (const [place, text] of textsOf(release)) {
      const rest = lasting.reduce((left, known) => left.replaceAll(known, ''), text);
      for (const [what, pattern] of movingText) {
        const [found] = pattern.exec(rest) ?? [];
        if (found !== undefined) return `${place} holds ${what}: ${found}`;
      }
    }
    return undefined;
  },
};

/** Of what the release is; they are others only where it is another. */
function lastingHashes({ image, patches, unit }: Release): readonly string[] {
  const identity = unit.match(new RegExp(`${identityLabel}=[0-9a-f]{64}`)) ?? [];
  return [image, ...identity, ...patches.map(({ patchedSha256 }) => patchedSha256)].filter(
    (text) => text !== '',
  );
}

/** What configured paths hold of it was there before anything was rendered: a disk's UUID, a blob's hash. */
function lastingNames(release: Release): readonly string[] {
  const paths = [release.payload.folder, ...mountsOf(release).map(({ source }) => source)];
  return paths
    .flatMap((path) => path.split('/'))
    .flatMap((part) => movingText.flatMap(([, pattern]) => pattern.exec(part)?.[0] ?? []));
}
