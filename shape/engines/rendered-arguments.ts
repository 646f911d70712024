import { isJsonObject, jsonOrUndefined } from '../json.ts';

/** Short names that vLLM gives to flags which the rules look at. */
const shortNames: Readonly<Record<string, string>> = {
  '-tp': '--tensor-parallel-size',
  '-q': '--quantization',
  '-sc': '--speculative-config',
  '-pp': '--pipeline-parallel-size',
  '-dp': '--data-parallel-size',
  '-dpl': '--data-parallel-size-local',
  '-pcp': '--prefill-context-parallel-size',
};

/** A short name of one letter may have its value right behind it, as `-qgptq`. */
const glued = /^(-q)([^=].*)$/s;

/** The arguments of a release as vLLM's parser reads them, whichever field or list they come from. */
export interface RenderedArguments {
  /** Every flag, spelled in full, in the order in which the last of each is there. */
  readonly flags: readonly string[];
  /** Whether the last word on a switch turns it on; undefined: nothing is said of it. */
  isOn(flag: `--${string}`): boolean | undefined;
  /** What follows the flag, the last time it is there; empty for a switch, undefined where it is absent. */
  value(flag: `--${string}`): string | undefined;
  /** All that follows the flag, as of `--served-model-name a b`; empty where it is absent. */
  values(flag: `--${string}`): readonly string[];
  /** The value as a number; undefined where it is absent or no number. */
  number(flag: `--${string}`): number | undefined;
  /**
   * The value as the JSON object that it is, with what `--flag.key value` lays over it; undefined where it is
   * absent or no object.
   */
  object(flag: `--${string}`): Readonly<Record<string, unknown>> | undefined;
}

/** Reads words such as `--flag value`, `--flag=value`, `--a_flag`, `--no-flag`, `-qvalue` and `--flag.key value`. */
export function renderedArguments(words: readonly string[]): RenderedArguments {
  const options = new Map<string, readonly string[]>();
  for (const { name, values } of optionsIn(words)) {
    options.delete(name);
    options.set(name, values);
  }
  const places = new Map([...options.keys()].map((name, place) => [name, place]));
  const values = (flag: string): readonly string[] => options.get(flag) ?? [];
  const value = (flag: string): string | undefined =>
    options.has(flag) ? (values(flag)[0] ?? '') : undefined;
  return {
    flags: [...options.keys()],
    isOn(flag) {
      const [on, off] = [places.get(flag), places.get(flag.replace('--', '--no-'))];
      return on === undefined && off === undefined ? undefined : (on ?? -1) > (off ?? -1);
    },
    value,
    values,
    number(flag) {
      const text = value(flag)?.trim() ?? '';
      return text === '' || Number.isNaN(Number(text)) ? undefined : Number(text);
    },
    object(flag) {
      const whole = objectIn(value(flag));
      const parts = [...options.keys()].filter((name) => name.startsWith(`${flag}.`));
      if (whole === undefined && parts.length === 0) return undefined;
      const laidOver = parts.map((name) => [name.slice(flag.length + 1), values(name)[0] ?? ''] as const);
      return { ...whole, ...Object.fromEntries(laidOver) };
    },
  };
}

interface Option {
  readonly name: string;
  readonly values: readonly string[];
}

function optionsIn(words: readonly string[]): readonly Option[] {
  const options: { name: string; values: string[] }[] = [];
  for (const word of words) {
    const [, short, behind] = glued.exec(word) ?? [];
    if (short !== undefined && behind !== undefined) {
      options.push({ name: spelled(short), values: [behind] });
      // A word such as -1 is a value.
    } else if (/^-{1,2}[A-Za-z]/.test(word)) {
      const [written = '', ...rest] = word.split('=');
      options.push({ name: spelled(written), values: rest.length > 0 ? [rest.join('=')] : [] });
    } else {
      options.at(-1)?.values.push(word);
    }
  }
  return options;
}

/** vLLM's parser takes underscores for dashes, in the name and not in the keys behind its first dot. */
function spelled(written: string): string {
  const [name = '', ...keys] = (shortNames[written] ?? written).split('.');
  return [name.replaceAll('_', '-'), ...keys].join('.');
}

function objectIn(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  const parsed = jsonOrUndefined(text);
  return isJsonObject(parsed) ? parsed : undefined;
}
