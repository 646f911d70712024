import type { Release } from '../release.ts';
import { secretIn, secretVariable } from '../secret-shapes.ts';
import { isWithin, mountsOf } from './mounts.ts';
import { textsOf } from './release-texts.ts';
import type { Rule } from './rule.ts';
import { isOff, type Setting, settingsOf } from './settings.ts';

const reason = "the unit is readable on the host, and Pulumi's state and diffs hold it in plain text";
const evidence = 'docs/architecture.md: the manifest names a secret and its version, never a value';
const remedy =
  'name the variable in slot:shape.secrets and set its value encrypted in slot:secrets; give this one up';

// What is found is shown to everyone: it says where, never what.

export const noSecretInUnit: Rule = {
  id: 'no-secret-in-unit',
  severity: 'refuse',
  reason,
  evidence,
  remedy,
  examine: ({ release }) => {
    for (const [place, text] of [...textsOf(release), ...diffsOf(release)]) {
      const found = secretIn(text);
      if (found !== undefined) return `${place} holds ${found}`;
    }
    return undefined;
  },
};

export const noSecretByName: Rule = {
  id: 'no-secret-by-name',
  severity: 'refuse',
  reason,
  evidence,
  remedy,
  examine: ({ release }) => {
    const found = settingsOf(release).find(
      (setting) =>
        mayBeSecret(setting.value, release) && (speaksOfSecret(setting) || loginInUrl.test(setting.value)),
    );
    return found && `${found.written} holds a value in plain text`;
  },
};

/** Words of models and caches that end as names of secrets do. */
const harmless =
  /(?:^|_)(?:(?:BOS|EOS|PAD|UNK|SEP|CLS|MASK|STOP|IMAGE|VIDEO|AUDIO|THINK)_TOKEN|(?:CACHE|SORT|PARTITION|PRIMARY|FOREIGN|PUBLIC|TOKENIZER|HASH|GROUP|ROUTING)_KEY|(?:FUSION|COMPILE|GRAPH|INDUCTOR|FORWARD|BACKWARD)_PASS|(?:REGEX|GLOB|FILE|SPLIT)_PAT)$/i;

/** Keys of arguments and of JSON; those of models, such as `eos_token`, are none. */
const secretKey =
  /(?:^|\.)(?:token|auth)$|(?:^|[._])(?:api_?key|(?:hf|auth|access|api|bearer|refresh|session|secret|client|private)_?token|pass(?:word|wd|phrase)|pwd|(?:client_?|app_?)?secret|secret_?(?:access_?)?key|access_?key(?:_?id)?|private_?key|credentials?|authorization|cookie)$/;

/** The same in a text of its own, as `a=b,token=…`. */
const keyInText =
  /(?:^|[\s,;&?{"'])(?:x-)?(?:api[_-]?key|token|access[_-]?token|secret|password|passwd|authorization)["']?\s*[=:]\s*["']?(?!\d{1,6}\b)[^\s,;&"'{}]{3,}/i;

/** A name in front of a host, without a password: it may be a token. */
const loginInUrl = /:\/\/[^\s/:@"']{8,}@/;

function speaksOfSecret({ name, written, value }: Setting): boolean {
  // Keys of a list end in its numbers.
  const key = name.replace(/(?:\.\d+)+$/, '');
  const isKey = written.startsWith('-') || key.includes('.');
  const named = isKey ? secretKey.test(key) : secretVariable.test(name) && !harmless.test(name);
  return named || keyInText.test(value);
}

/** A switch, a number, a mark such as `<|im_end|>` and a path are no secrets. */
function mayBeSecret(value: string, release: Release): boolean {
  return (
    value.trim() !== '' &&
    !isOff(value) &&
    !/^(?:true|yes|on|\d{1,6}|<[^>]*>)$/i.test(value) &&
    !isPath(value, release)
  );
}

/** Secrets may begin with / as well: a path leads to where the system or a mount has files. */
function isPath(value: string, release: Release): boolean {
  return (
    /^\/(?:app|data|dev|etc|home|media|mnt|model|opt|root|run|secrets?|srv|state|tmp|usr|var|work(?:space)?)\/[^\s=]+$/.test(
      value,
    ) ||
    (value.startsWith('/') && mountsOf(release).some(({ target }) => isWithin(value, target)))
  );
}

function diffsOf({ patches }: Release): readonly (readonly [place: string, text: string])[] {
  return patches.flatMap(({ diffs }) => diffs.map(({ name, text }) => [name, text] as const));
}
