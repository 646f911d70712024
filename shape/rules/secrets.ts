import type { Release } from '../release.ts';
import { secretIn, secretVariable } from '../secret-shapes.ts';
import { textsOf } from './release-texts.ts';
import type { Rule } from './rule.ts';
import { settingsOf } from './settings.ts';

const secretArgument =
  /(?:^|[._])(?:api_?key|(?:hf|auth|access|api|bearer)_token|password|passwd|passphrase|secret(?:_key)?)$/;

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
      const found = secretIn(text);
      if (found !== undefined) return `${place} holds ${found}`;
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
