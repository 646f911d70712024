import type { Rule } from './rule.ts';

/** Registry host, name and digest, whole; a tag beside the digest is another rule's matter. */
const pinned = /^(?:localhost|[^/@\s]*[.:][^/@\s]*)\/[a-z0-9._/-]+(?::[^/@\s]+)?@sha256:[0-9a-f]{64}$/;

/** A rule that judges an image by its reference alone, wherever one is named. */
export interface ImageRule extends Rule {
  examineImage(reference: string): string | undefined;
}

function imageRule(rule: Omit<ImageRule, 'examine'>): ImageRule {
  return { ...rule, examine: ({ release }) => rule.examineImage(release.image) };
}

export const imageByDigest = imageRule({
  id: 'image-by-digest',
  severity: 'refuse',
  reason: 'a tag names another image tomorrow, and podman under systemd cannot ask which registry is meant',
  evidence: 'runbook of the endpoint; podman 4.3.1 refuses a malformed digest only at run time (measured)',
  remedy: 'name registry/name in lower case and sha256: with 64 lower-case hexadecimal digits',
  examineImage: (reference) => (pinned.test(reference) ? undefined : JSON.stringify(reference)),
});

export const imageWithoutTag = imageRule({
  id: 'image-without-tag',
  severity: 'refuse',
  reason: 'podman drops a tag beside a digest silently, so one that contradicts the digest is never noticed',
  evidence: 'old podman and skopeo refuse the pair, newer podman drops the tag (field reports)',
  remedy: 'leave the tag out; a comment may hold it',
  examineImage: (reference) =>
    /:[^/@]+(?:@|$)/.test(reference.split('@')[0]?.split('/').slice(1).join('/') ?? '')
      ? JSON.stringify(reference)
      : undefined,
});

export const imageRules: readonly ImageRule[] = [imageByDigest, imageWithoutTag];
