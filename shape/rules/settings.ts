import { type RenderedArguments, renderedArguments } from '../engines/rendered-arguments.ts';
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

const off = /^(?:0|false|off|no|none|null|disabled?)$/i;

/** All settings of a release; the values of its secrets are not among them. */
export const settingsOf = perRelease((release): readonly Setting[] => {
  const words = renderedArguments(release.arguments);
  return [
    ...words.flags.flatMap((flag) => settingsOfFlag(flag, words)),
    ...Object.entries(release.environment).map(([name, value]) => setting(name, name, value, value !== '')),
  ];
});

function settingsOfFlag(flag: string, words: RenderedArguments): readonly Setting[] {
  const value = words.values(flag as `--${string}`).join(' ');
  return [
    setting(flag, flag, value, !flag.startsWith('--no-')),
    ...keysIn(words.object(flag as `--${string}`), flag).map(([path, inner]) =>
      setting(path, flag, inner, inner !== ''),
    ),
  ];
}

function keysIn(value: unknown, path: string): readonly (readonly [path: string, value: string])[] {
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, inner]) => [
    [`${path}.${key}`, typeof inner === 'object' ? '' : String(inner)] as const,
    ...keysIn(inner, `${path}.${key}`),
  ]);
}

function setting(name: string, written: string, value: string, unlessOff: boolean): Setting {
  return {
    name: name.replace(/^--?/, '').replaceAll('-', '_').toLowerCase(),
    written,
    value,
    isOn: unlessOff && !off.test(value),
  };
}

/** As it is shown in what a rule finds. */
export function shown({ written, value }: Setting): string {
  if (!written.startsWith('-')) return `${written}=${value}`;
  return value === '' ? written : `${written} ${value}`;
}
