import { type RenderedArguments, renderedArguments } from '../engines/rendered-arguments.ts';
import { jsonOrUndefined } from '../json.ts';
import { perRelease } from '../per-release.ts';

/** One thing that a release sets, by argument, by a key of an argument's JSON, or by variable. */
export interface Setting {
  /** Lower case, words joined by `_`, e.g. `speculative_config.num_speculative_tokens`. */
  readonly name: string;
  /** As a reader finds it in the unit, e.g. `--speculative-config`. */
  readonly written: string;
  readonly value: string;
  /** An argument that is there without a value is on, a variable without one is not. */
  readonly isOn: boolean;
}

/** Whether a value turns off what it is the value of: a word for it, or a zero however it is written. */
export function isOff(value: string): boolean {
  const bare = value.trim().replace(/^(["'])(.*)\1$/, '$2');
  return (
    /^(?:false|f|off|no|n|none|null|disabled?)$/i.test(bare) || (bare.trim() !== '' && Number(bare) === 0)
  );
}

/** A name of something that is off where its setting is on, e.g. `vllm_disable_x`. */
const negated = /(?:^|[._])(?:no|disable)_|_disabled?$/;

/** All settings of a release; the values of its secrets are not among them. */
export const settingsOf = perRelease((release): readonly Setting[] => {
  const words = renderedArguments(release.arguments);
  return [
    ...words.flags.flatMap((flag) => settingsOfFlag(flag, words)),
    ...Object.entries(release.environment).flatMap(([name, value]) => [
      setting(name, name, value, value !== ''),
      ...innerSettings(name, name, value),
    ]),
  ];
});

function settingsOfFlag(flag: string, words: RenderedArguments): readonly Setting[] {
  const values = words.values(flag as `--${string}`);
  return [
    setting(flag, flag, values.join(' '), true),
    ...values.flatMap((value) => innerSettings(flag, flag, value)),
  ];
}

/** What a value that is JSON sets. */
function innerSettings(name: string, written: string, value: string): readonly Setting[] {
  return keysIn(jsonIn(value), name).map(([path, inner]) => setting(path, written, inner, inner !== ''));
}

/** Map or list that a text holds as JSON; undefined: none. */
export function jsonIn(text: string): unknown {
  return /^\s*[[{]/.test(text) ? jsonOrUndefined(text) : undefined;
}

function keysIn(value: unknown, path: string): readonly (readonly [path: string, value: string])[] {
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, inner]) => [
    [`${path}.${key}`, typeof inner === 'object' ? '' : String(inner)] as const,
    ...keysIn(inner, `${path}.${key}`),
  ]);
}

function setting(written: string, shownAs: string, value: string, isThere: boolean): Setting {
  const name = written.replace(/^--?/, '').replaceAll('-', '_').toLowerCase();
  return {
    name,
    written: shownAs,
    value,
    isOn: negated.test(name) ? isOff(value) : isThere && !isOff(value),
  };
}

/** As it is shown in what a rule finds. */
export function shown({ written, value }: Setting): string {
  if (!written.startsWith('-')) return `${written}=${value}`;
  return value === '' ? written : `${written} ${value}`;
}
