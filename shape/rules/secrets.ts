import type { Release } from '../release.ts';
import { textsOf } from './release-texts.ts';
import type { Rule } from './rule.ts';
import { settingsOf } from './settings.ts';

const secretVariable =
  /(?:^|_)(?:TOKEN|KEY|PASS|PAT)$|(?:APIKEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$/i;
const secretArgument =
  /(?:^|[._])(?:api_?key|(?:hf|auth|access|api|bearer)_token|password|passwd|passphrase|secret(?:_key)?)$/;

/** What a secret looks like wherever it stands, by the words for it. */
const shapes: readonly (readonly [what: string, RegExp])[] = [
  ['a Hugging Face token', /\bhf_[A-Za-z0-9]{16,}/],
  ['an API key', /\bsk-[A-Za-z0-9_-]{16,}/],
  ['a GitHub token', /\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})/],
  ['a GitLab token', /\bglpat-[A-Za-z0-9_-]{16,}/],
  ['a key of AWS', /\bAKIA[0-9A-Z]{16}\b/],
  ['a Slack token', /\bxox[abprs]-[A-Za-z0-9-]{10,}/],
  ['a signed token', /\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\./],
  ['a private key', /-----BEGIN [A-Z ]*PRIVATE KEY-----/],
  ['a bearer token', /\bBearer [A-Za-z0-9._~+/-]{8,}/],
  ['a login', /\bAuthorization: ?Basic /i],
  ['a URL with a password', /:\/\/[^\s/:@"']*:[^\s/@"']+@/],
];

export const noSecretInUnit: Rule = {
  id: 'no-secret-in-unit',
  severity: 'refuse',
  reason: "the unit is readable on the host, and Pulumi's state and diffs hold it in plain text",
  evidence: 'docs/architecture.md: the manifest names a secret and its version, never a value',
  remedy:
    'name the variable in slot:shape.secrets and set its value encrypted in slot:secrets; give this one up',
  examine: ({ release }) => {
    // What is found is shown to everyone: it says where, never what.
    const named = settingsOf(release).find(
      ({ name, written, value, isOn }) =>
        isOn && mayBeSecret(value) && (written.startsWith('-') ? secretArgument : secretVariable).test(name),
    );
    if (named !== undefined) return `${named.written} holds a value in plain text`;
    for (const [place, text] of [...textsOf(release), ...diffsOf(release)]) {
      const found = shapes.find(([, shape]) => shape.test(text));
      if (found !== undefined) return `${place} holds ${found[0]}`;
    }
    return undefined;
  },
};

/** A switch, a number or a path is none. */
function mayBeSecret(value: string): boolean {
  return !/^(?:|true|yes|on|\d{1,6}|\/\S*)$/i.test(value);
}

function diffsOf({ patches }: Release): readonly (readonly [place: string, text: string])[] {
  return patches.flatMap(({ diffs }) => diffs.map(({ name, text }) => [name, text] as const));
}
