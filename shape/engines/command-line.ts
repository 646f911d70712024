import * as z from 'zod';

/** What follows a flag: nothing, one value, perhaps one, any number of values, or one value that is JSON. */
export const takesSchema = z.enum(['nothing', 'value', 'optional', 'list', 'json']);
type Takes = z.infer<typeof takesSchema>;

/** A flag as an engine's parser knows it. */
export interface Flag {
  /** In full, with its dashes, e.g. `--max-model-len`. */
  readonly name: string;
  /** Other spellings, its negation among them, e.g. `--no-enable-prefix-caching`, `-tp`. */
  readonly aliases: readonly string[];
  readonly takes: Takes;
  /** The only values it takes; undefined: any. */
  readonly choices?: readonly string[] | undefined;
  /** May be there more than once, each time with another value. */
  readonly repeats?: true;
}

/** A flag that a release of the engine took away, or gave another meaning. */
export interface ChangedFlag {
  readonly names: readonly string[];
  /** The release. */
  readonly since: string;
  /** `value`: it is still there, and takes the next word as its value, which it did not before. */
  readonly now: 'gone' | 'value';
  readonly instead: string;
  /** Where the engine's own history says so. */
  readonly source: string;
}

/** What an engine's command line is like, whatever build of the engine it is. */
export interface CommandLine {
  /** Flags of the engine's public releases; a build may have more, and may have lost some. */
  readonly flags: readonly Flag[];
  readonly changed: readonly ChangedFlag[];
  /** Flags that something else of the configuration decides, and what. */
  readonly owned: Readonly<Record<string, string>>;
  /** Flags that must not be there at all, with the reason and what to do instead. */
  readonly forbidden: Readonly<Record<string, readonly [limit: string, remedy: string]>>;
  /** Keys of flags that are JSON by which a flag that is owned can be said as well, and the field that decides it. */
  readonly ownedKeys: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Flags whose JSON is a list; that of all others is an object. */
  readonly jsonLists: readonly string[];
  /** Whether its parser takes `--flag=value` in one word. */
  readonly takesEquals: boolean;
  /** Names of programs with which a command line of this engine begins where the image has no entrypoint. */
  readonly programs: readonly string[];
}

/** A word of a command line that names a flag. */
export interface FlagWord {
  /** As it is written, without a value behind `=`. */
  readonly written: string;
  /** As the parsers read it: underscores of a long flag are dashes, but not behind its first dot. */
  readonly name: string;
  /** What is behind the first `=`; undefined: there is none. */
  readonly value: string | undefined;
}

/** The flag that a word names; undefined for a value, such as -1. */
export function flagIn(word: string): FlagWord | undefined {
  if (!/^--?[A-Za-z]/.test(word)) return undefined;
  // vLLM's parser takes the level behind its letter as well: -O3, -O=3.
  const [, level] = /^-O=?(\w+)$/.exec(word) ?? [];
  if (level !== undefined) return { written: '-O', name: '--optimization-level', value: level };
  const equals = word.indexOf('=');
  const written = equals === -1 ? word : word.slice(0, equals);
  return { written, name: spelled(written), value: equals === -1 ? undefined : word.slice(equals + 1) };
}

function spelled(written: string): string {
  if (!written.startsWith('--')) return written;
  const dot = written.indexOf('.');
  const [name, keys] = dot === -1 ? [written, ''] : [written.slice(0, dot), written.slice(dot)];
  return name.replaceAll('_', '-') + keys;
}

/** A flag and the words that follow it. */
export interface Occurrence extends FlagWord {
  /** Of the flag's word in the list. */
  readonly index: number;
  /** What is behind `=`, then the words up to the next flag. */
  readonly values: readonly string[];
}

/** The flags of a command line in order; words before the first belong to none. */
export function occurrencesIn(words: readonly string[]): readonly Occurrence[] {
  const found: (Occurrence & { values: string[] })[] = [];
  for (const [index, word] of words.entries()) {
    const flag = flagIn(word);
    if (flag === undefined) found.at(-1)?.values.push(word);
    else found.push({ ...flag, index, values: flag.value === undefined ? [] : [flag.value] });
  }
  return found;
}

/** The flag of this name, or of which it sets one key, as `--compilation-config.mode` does. */
export function flagNamed(flags: readonly Flag[], name: string): Flag | undefined {
  const [whole = name] = name.split('.');
  const bySpelling = indexOf(flags);
  const found = bySpelling.get(whole);
  if (found !== undefined) return found;
  const positive = bySpelling.get(whole.replace(/^--no-/, '--'));
  return positive?.takes === 'nothing' ? positive : undefined;
}

/** The flag that a name is the beginning of, which vLLM's parser would take for it; undefined: it is whole. */
export function flagAbbreviatedBy(flags: readonly Flag[], name: string): string | undefined {
  const [whole = name] = name.split('.');
  if (flagNamed(flags, whole) !== undefined) return undefined;
  for (const known of indexOf(flags).keys()) if (known.startsWith(whole)) return known;
  return undefined;
}

/** The flag that is gone or changed of which a name is the beginning, where it is that of no flag of today. */
export function changeAbbreviatedBy(
  { flags, changed }: Pick<CommandLine, 'flags' | 'changed'>,
  name: string,
): { readonly change: ChangedFlag; readonly whole: string } | undefined {
  const positive = name.replace(/^--no-/, '--');
  if (flagNamed(flags, name) !== undefined || flagAbbreviatedBy(flags, name) !== undefined) return undefined;
  if (!positive.startsWith('--') || changed.some(({ names }) => names.includes(positive))) return undefined;
  for (const change of changed) {
    const whole = change.names.find((known) => known.startsWith(positive));
    if (whole !== undefined) return { change, whole };
  }
  return undefined;
}

const indexes = new WeakMap<readonly Flag[], ReadonlyMap<string, Flag>>();

/** Flags by all of their spellings, in their order; made once a list: each word of a command line is looked up. */
function indexOf(flags: readonly Flag[]): ReadonlyMap<string, Flag> {
  const before = indexes.get(flags);
  if (before !== undefined) return before;
  const index = new Map<string, Flag>();
  for (const flag of flags) {
    for (const spelling of [flag.name, ...flag.aliases]) {
      if (!index.has(spelling)) index.set(spelling, flag);
    }
  }
  indexes.set(flags, index);
  return index;
}

/** Whether a flag cannot stand without a value. */
export function needsValue({ takes }: Flag): boolean {
  return takes === 'value' || takes === 'list' || takes === 'json';
}
