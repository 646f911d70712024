import type { z } from 'zod';
import {
  at,
  type FileKind,
  howToSupply,
  type Known,
  placeholdersFor,
  suppliedBelow,
} from './operator-supplied.ts';
import { ConfigurationError, type Path, type Problem, shorten, spell } from './problems.ts';
import { knownKeys, unknownKeyRemedy } from './schema-keys.ts';
import { quote } from './strict-yaml.ts';

export interface Subject {
  readonly kind: FileKind;
  readonly file: string;
  readonly value: unknown;
  /** The text of the value as written, where a file was read. */
  sourceAt(path: Path): string | undefined;
}

export type Validated<T> =
  | { readonly data: T; readonly problems?: never }
  | { readonly data?: never; readonly problems: readonly Problem[] };

export function validate<S extends z.ZodType>(schema: S, subject: Subject): Validated<z.output<S>> {
  const secrets = secretsIn(subject.value).map((path) => secretProblem(subject, path));
  const result = schema.safeParse(subject.value);
  if (result.success && secrets.length === 0) return { data: result.data };
  const issues = result.success ? [] : result.error.issues;
  const problems = issues.flatMap((issue) => problemsOf(issue, schema, subject));
  const secretKeys = new Set(secrets.map(({ key }) => key));
  return { problems: [...secrets, ...problems.filter(({ key }) => !secretKeys.has(key))] };
}

/** The subject with placeholders for what only the operator can supply, and what of that is missing. */
export function draftOf(subject: Subject): {
  readonly completed: Subject;
  readonly missing: readonly Problem[];
} {
  const known: Known = { stack: stackOf(subject.file), value: subject.value };
  const placeholders = placeholdersFor(subject.kind, known);
  return {
    completed: {
      ...subject,
      value: placeholders.reduce((value, { path, value: filled }) => put(value, path, filled), subject.value),
    },
    missing: placeholders.map(({ path }) => missingProblem(path, subject, known)),
  };
}

/** A copy of the value with another one at the path; what is no map on the way stays as it is. */
function put(value: unknown, [first, ...rest]: Path, filled: unknown): unknown {
  if (first === undefined) return filled;
  if (value !== undefined && (value === null || typeof value !== 'object' || Array.isArray(value)))
    return value;
  const map = (value ?? {}) as Readonly<Record<PropertyKey, unknown>>;
  return { ...map, [first]: put(map[first], rest, filled) };
}

/** The stack of a file that is named as Pulumi names it. */
export function stackOf(file: string): string {
  return /(?:^|[\\/])Pulumi\.([^\\/]+)\.ya?ml$/.exec(file)?.[1] ?? '<stack>';
}

function problemsOf(issue: z.core.$ZodIssue, schema: z.ZodType, subject: Subject): readonly Problem[] {
  const { file, kind } = subject;
  const root = rootOf(kind);
  const known: Known = { stack: stackOf(file), value: subject.value };
  if (issue.code === 'unrecognized_keys') {
    const siblings = knownKeys(schema, issue.path, subject.value);
    return issue.keys.map((name) => ({
      file,
      key: spell(root, [...issue.path, name]),
      value: undefined,
      limit: 'is not a known key',
      remedy: unknownKeyRemedy(name, siblings),
    }));
  }
  const key = spell(root, issue.path);
  const found = at(subject.value, issue.path);
  if (found === undefined || found === null) return missingProblems(issue.path, subject, known);
  const remedy = remedyFor(issue.path, subject, known);

  const params = issue.code === 'custom' ? (issue.params ?? {}) : {};
  const written = subject.sourceAt(issue.path) ?? plain(found);
  const unquoted = issue.code === 'invalid_type' && issue.expected === 'string' && typeof found !== 'object';
  const stated = typeof params.remedy === 'string' ? params.remedy : undefined;
  return [
    {
      file,
      key,
      value: shorten(written),
      limit: limitOf(issue),
      remedy: stated ?? (unquoted ? `quote it: ${quote(written)}` : remedy),
    },
  ];
}

/** A missing map is asked for by what it must hold. */
function missingProblems(path: Path, subject: Subject, known: Known): readonly Problem[] {
  const below = suppliedBelow(subject.kind, path);
  return (below.length === 0 ? [path] : below).map((missing) => missingProblem(missing, subject, known));
}

function missingProblem(path: Path, subject: Subject, known: Known): Problem {
  return {
    file: subject.file,
    key: spell(rootOf(subject.kind), path),
    value: undefined,
    limit: 'is required',
    remedy: remedyFor(path, subject, known),
  };
}

function remedyFor(path: Path, { kind }: Subject, known: Known): string {
  const key = spell(rootOf(kind), path);
  if (kind === 'model') return 'write it there';
  return (
    howToSupply(kind, path, known) ?? `set it: pulumi config set --path '${key}' <value> -s ${known.stack}`
  );
}

/** The key of a stack file below which the value lies. */
function rootOf(kind: FileKind): string {
  return kind === 'model' ? '' : `slot:${kind}`;
}

function limitOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${typeNames[issue.expected] ?? issue.expected}`;
    case 'too_small':
      return `must be ${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}`;
    case 'too_big':
      return `must be ${issue.inclusive ? 'at most' : 'less than'} ${issue.maximum}`;
    case 'invalid_value':
      return `must be ${issue.values.map(String).join(' or ')}`;
    case 'invalid_key':
      return issue.issues[0]?.message ?? issue.message;
    default:
      return issue.message;
  }
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
  record: 'a map',
};

function plain(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Paths of what `pulumi config set --secret` writes, decrypted or not. */
function secretsIn(value: unknown, path: Path = []): readonly Path[] {
  if (value === null || typeof value !== 'object') return [];
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  if (entries.length === 1 && entries[0]?.[0] === 'secure') return [path];
  return entries.flatMap(([key, inner]) => secretsIn(inner, [...path, key]));
}

function secretProblem({ file, kind }: Subject, path: Path): Problem {
  return {
    file,
    key: spell(rootOf(kind), path),
    value: undefined,
    limit: 'must not be a secret: it would reach the state and the unit file in plain text',
    remedy: kind === 'host' ? 'name the ssh key by agent or path' : 'leave it out',
  };
}

/** @throws ConfigurationError with all problems, if there are any */
export function dataOf<T>(validated: Validated<T>, further: readonly Problem[] = []): T {
  // A disputed word is often also of a wrong type: one complaint a key.
  const keys = new Set(further.map(({ key }) => key));
  const problems = [...further, ...(validated.problems ?? []).filter(({ key }) => !keys.has(key))];
  if (problems.length > 0) throw new ConfigurationError(problems);
  return validated.data as T;
}
