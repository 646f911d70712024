import { mayBeSecret, withoutSecrets } from './secret-shapes.ts';

/** One thing that is wrong with a configuration. */
export interface Problem {
  readonly file: string;
  /** Key path as `pulumi config set --path` takes it, e.g. `slot:shape.engine.image.digest`; empty: the file. */
  readonly key: string;
  /** What is there, as written and shortened; undefined: nothing. */
  readonly value: string | undefined;
  /** What it must be or must not be. */
  readonly limit: string;
  /** What to do next. */
  readonly remedy: string;
}

/** All that is wrong with a configuration, at once. */
export class ConfigurationError extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const tellable = problems.map(withoutItsSecrets);
    super(tellable.map(describe).join('\n'));
    this.name = 'ConfigurationError';
    this.problems = tellable;
  }
}

/** Messages are logged and pasted into reports: what looks like a secret is in none, wherever it was written. */
function withoutItsSecrets({ file, key, value, limit, remedy }: Problem): Problem {
  const isHidden = value !== undefined && mayBeSecret(value);
  const hide = (text: string): string => withoutSecrets(isHidden ? text.replaceAll(value, '…') : text);
  return {
    file,
    key: withoutSecrets(key),
    value: isHidden ? 'not shown: it looks like a secret' : value,
    limit: hide(limit),
    remedy: hide(remedy),
  };
}

/**
 * Carries all parts out, whichever fails.
 *
 * @throws ConfigurationError with the problems of all that failed
 */
export function allOf<T extends readonly unknown[]>(...parts: { [K in keyof T]: () => T[K] }): T {
  const problems: Problem[] = [];
  const results = parts.map((part: () => unknown) => {
    try {
      return part();
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      problems.push(...error.problems);
      return undefined;
    }
  });
  if (problems.length > 0) throw new ConfigurationError(problems);
  return results as unknown as T;
}

function describe({ file, key, value, limit, remedy }: Problem): string {
  const subject = [file, key].filter((part) => part !== '').join(': ');
  const found = value === undefined ? '' : ` (it is ${value})`;
  return `${subject}: ${limit}${found}\n${remedy.replaceAll(/^/gm, '    ')}`;
}

export type Path = readonly PropertyKey[];

/** Spells a path below a configuration key as Pulumi does: `slot:host`, `gpus`, 0 → `slot:host.gpus[0]`. */
export function spell(root: string, path: Path): string {
  return path.reduce<string>((spelled, part) => {
    if (typeof part === 'number') return `${spelled}[${part}]`;
    const name = String(part);
    if (!/^[\w:-]+$/.test(name)) return `${spelled}[${JSON.stringify(name)}]`;
    return spelled === '' ? name : `${spelled}.${name}`;
  }, root);
}

export function shorten(text: string): string {
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
