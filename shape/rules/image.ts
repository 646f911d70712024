import type { Rule } from './rule.ts';

export const imageByDigest: Rule = {
  id: 'image-by-digest',
  severity: 'refuse',
  reason: 'a tag names another image tomorrow, and podman under systemd cannot ask which registry is meant',
  evidence: 'facts, rule 8; podman 4.3.1 refuses a malformed digest only at run time (measured)',
  examine: ({ release }) =>
    /^[^/@]*[.:][^/@]*\/[a-z0-9._/-]+@sha256:[0-9a-f]{64}$|^localhost\/[a-z0-9._/-]+@sha256:[0-9a-f]{64}$/.test(
      release.image,
    )
      ? undefined
      : release.image,
};
