import { nameSchema } from './text.ts';

/** What a secret looks like wherever it stands, by the words for it. */
const shapes: readonly (readonly [what: string, RegExp])[] = [
  ['a Hugging Face token', /\bhf_[A-Za-z0-9]{16,}/],
  ['an API key', /\bsk-[A-Za-z0-9_-]{16,}|\b[prs]k_(?:live|test)_[A-Za-z0-9]{10,}/],
  ['an API key', /\bnvapi-[A-Za-z0-9_-]{20,}|\b(?:gsk_|xai-|r8_|jina_)[A-Za-z0-9]{30,}/],
  ['a key of Google', /\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{16,}/],
  ['a GitHub token', /\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})/],
  ['a GitLab token', /\bglpat-[A-Za-z0-9_-]{16,}/],
  ["a registry's token", /\bnpm_[A-Za-z0-9]{30,}|\bpypi-AgEI[\w-]{20,}|\bdckr_pat_[\w-]{20,}/],
  [
    'a token of a service',
    /\bglsa_[A-Za-z0-9_]{20,}|\bhv[bs]\.[\w-]{20,}|\bdapi[0-9a-f]{32}|\bSG\.[\w-]{16,}\.[\w-]{16,}/,
  ],
  ['a key of AWS', /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/],
  ['a Slack token', /\bx(?:ox[abeprs]|app)-[A-Za-z0-9-]{10,}/],
  ['a signed token', /\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\./],
  ['a private key', /-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAGE-SECRET-KEY-1[0-9A-Z]{20,}/],
  ['a bearer token', /\bBearer(?: |%20|\+)[A-Za-z0-9._~+/-]{8,}/],
  [
    'a login',
    /\bAuthorization["']?\s*[:=]\s*["']?(?:Basic|Bearer|Token|Digest|ApiKey)(?:\s|%20|\+)[^\s"']{4,}/i,
  ],
  ['a URL with a password', /:\/\/[^\s/:@"']*:(?!\d{1,5}(?:[/,]|$))[^\s@"']+@/],
  [
    'a URL with a key',
    /[?&](?:api[_-]?key|(?:access|auth|api|session|refresh)?[_-]?token|key|sig|signature|secret|passw(?:or)?d|pwd|auth|x-amz-(?:signature|security-token|credential))=[^\s&"'#]{4,}/i,
  ],
];

/** Names of variables that speak of secrets. */
export const secretVariable =
  /(?:^|_)(?:TOKEN|KEY|PASS|PWD|PAT|COOKIE|HEADERS)(?:_?\d+)?$|API_?KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|PGPASS|CREDENTIAL|AUTH(?!OR|ENTIC)|(?:^|_)PRIVATE_KEY/i;

/** The words for a secret of a known shape in a text; undefined: there is none. */
export function secretIn(text: string): string | undefined {
  return shapes.find(([, shape]) => shape.test(text))?.[0];
}

/** Beginnings of secrets, however short: a message that hides too much of a value does no harm. */
const begun = /(?:\b(?:hf_|sk-|gh[pousr]_|github_pat_|glpat-|xox[abprs]-)|\bAKIA|\beyJ)[\w-]{4,}/;

/** Whether a value must not be repeated in a message. */
export function mayBeSecret(value: string): boolean {
  return secretIn(value) !== undefined || begun.test(value);
}

/** A text without the secrets of known shapes in it. */
export function withoutSecrets(text: string): string {
  return shapes.reduce((rest, [, shape]) => rest.replaceAll(new RegExp(shape, 'gi'), '…'), text);
}

/** Of a secret's value. It is part of the name of podman's secret, which everyone may read. */
export const secretVersionSchema = nameSchema.refine((version) => !mayBeSecret(version), {
  error: 'must not be a secret itself: it is part of a name that everyone may read',
  params: { mayBeSecret: true, remedy: "number the values, e.g. version: '1'" },
});
