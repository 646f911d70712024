import type { z } from 'zod';
import type { Form } from './forms.ts';
import {
  at,
  type FileKind,
  howToSupply,
  type Known,
  optionsFor,
  placeholdersFor,
  suppliedBelow,
} from './operator-supplied.ts';
import { ConfigurationError, type Path, type Problem, shorten, spell } from './problems.ts';
import { listed, secretPlaceOf, wordRemedy } from './remedies.ts';
import { formAt, knownKeys, mayBeLeftOut, placeBelow, unknownKeyRemedy, wantedAt } from './schema-keys.ts';
import { quote } from './strict-yaml.ts';

/** What is to be validated, with all that its messages can use. */
export interface Subject extends Known {
  readonly kind: FileKind;
  /** The text of the value as written, where a file was read. */
  sourceAt(path: Path): string | undefined;
}

export type Validated<T> =
  | { readonly data: T; readonly problems?: never }
  | { readonly data?: never; readonly problems: readonly Problem[] };

export function validate<S extends z.ZodType>(schema: S, subject: Subject): Validated<z.output<S>> {
  const refused = refusedKeys(subject);
  const result = schema.safeParse(subject.value);
  if (result.success && refused.length === 0) return { data: result.data };
  const keys = new Set(refused.map(({ key }) => key));
  const isBelowRefused = (path: Path): boolean =>
    [...path.keys(), path.length].some((length) =>
      keys.has(spell(rootOf(subject.kind), path.slice(0, length))),
    );
  const issues = result.success ? [] : result.error.issues;
  const problems = issues.filter(({ path }) => !isBelowRefused(path));
  return { problems: [...refused, ...problems.flatMap((issue) => problemsOf(issue, schema, subject))] };
}

/** The subject with placeholders for what only the operator can supply, and what of that is missing. */
export function draftOf(subject: Subject): {
  readonly completed: Subject;
  readonly missing: readonly Problem[];
} {
  const placeholders = placeholdersFor(subject.kind, subject);
  return {
    completed: {
      ...subject,
      value: placeholders.reduce((value, { path, value: filled }) => put(value, path, filled), subject.value),
    },
    missing: placeholders.map(({ path }) => missingProblem(path, subject)),
  };
}

/** A copy of the value with another one at the path; what is no map on the way stays as it is. */
function put(value: unknown, [first, ...rest]: Path, filled: unknown): unknown {
  if (first === undefined) return filled;
  if ((value ?? null) !== null && (typeof value !== 'object' || Array.isArray(value))) return value;
  const map = (value ?? {}) as Readonly<Record<PropertyKey, unknown>>;
  return { ...map, [first]: put(at(map, [first]), rest, filled) };
}

function problemsOf(issue: z.core.$ZodIssue, schema: z.ZodType, subject: Subject): readonly Problem[] {
  const { file, kind, value } = subject;
  const root = rootOf(kind);
  const unknown = (path: Path, name: string, siblings: readonly string[]): Problem => ({
    file,
    key: spell(root, path),
    value: undefined,
    limit: 'is not a known key',
    remedy: unknownKeyRemedy(name, siblings),
  });
  const secret = kind === 'shape' ? secretPlaceOf(issue.path, at(value, issue.path)) : undefined;
  const secretProblem = (limit: string): readonly Problem[] | undefined =>
    secret && [
      {
        file,
        key: spell(root, secret.path),
        value: undefined,
        limit,
        remedy: secret.remedy(optionsFor(file)),
      },
    ];
  if (issue.code === 'unrecognized_keys') {
    // A key that is none may be the value in the wrong place.
    const hidden = secretProblem('must hold nothing but its version');
    if (hidden !== undefined) return hidden;
    const siblings = knownKeys(schema, issue.path, value);
    return issue.keys.map((name) => unknown([...issue.path, name], name, siblings));
  }
  if (issue.code === 'invalid_key') {
    const [inner] = issue.issues;
    const name = String(issue.path.at(-1));
    if (inner?.code === 'invalid_value') return [unknown(issue.path, name, inner.values.map(String))];
    const limit = inner?.message ?? issue.message;
    const key = spell(root, issue.path);
    const remedy = 'write another key';
    return secretProblem(limit) ?? [{ file, key, value: undefined, limit, remedy }];
  }
  const found = at(value, issue.path);
  const isMissing =
    issue.code !== 'custom' &&
    (found === undefined || (found === null && typeof issue.path.at(-1) === 'string'));
  if (isMissing && !mayBeLeftOut(schema, issue.path, value)) {
    const hidden = secretProblem('is required');
    if (hidden !== undefined) return hidden;
    // Of a union the message says what may stand there.
    return missingProblems(
      issue.path,
      schema,
      subject,
      issue.code === 'invalid_union' ? issue.message : undefined,
    );
  }
  const source = subject.sourceAt(issue.path);
  const written = found === '' || found === null ? 'empty' : (source ?? plain(found));
  const form = formAt(schema, issue.path, value);
  const limit = limitAt(issue, form, found);
  const hidden = isStated(issue) ? undefined : secretProblem(limit);
  if (hidden !== undefined) return hidden;
  return [
    {
      file,
      key: spell(root, issue.path),
      value: mayBeSecret(issue) || limit === notEmpty || found === undefined ? undefined : shorten(written),
      limit,
      remedy: remedyOf(issue, schema, subject, form, found, source),
    },
  ];
}

function limitAt(issue: z.core.$ZodIssue, form: Form | undefined, found: unknown): string {
  if (found === '' && !isStated(issue) && form?.remedy === undefined) return notEmpty;
  return form?.remedy === undefined || issue.code === 'custom' ? limitOf(issue) : form.limit;
}

function isStated(issue: z.core.$ZodIssue): boolean {
  return issue.code === 'custom' && typeof issue.params?.remedy === 'string';
}

/** Whether the check that refused it says that the value must not be repeated. */
function mayBeSecret(issue: z.core.$ZodIssue): boolean {
  return issue.code === 'custom' && issue.params?.mayBeSecret === true;
}

function remedyOf(
  issue: z.core.$ZodIssue,
  schema: z.ZodType,
  subject: Subject,
  form: Form | undefined,
  found: unknown,
  source: string | undefined,
): string {
  const stated = issue.code === 'custom' ? issue.params?.remedy : undefined;
  if (typeof stated === 'string') return stated;
  if (found === null) return 'write a value, or take it out';
  if (form?.remedy !== undefined) return form.remedy;
  if (issue.code === 'invalid_type' && issue.expected === 'string' && typeof found !== 'object')
    return source === undefined ? 'quote it, as it is written there' : `quote it: ${quote(source)}`;
  if (isValueAsText(issue, found)) return `take the quotes away: ${found}`;
  if (found === '' && mayBeLeftOut(schema, issue.path, subject.value)) return 'write a value, or take it out';
  const wanted = wantedAt(schema, issue.path, subject.value, plain(found));
  // What a command sets is text where it has a point.
  if (wanted?.what === 'number' && issue.code === 'invalid_type') return wordRemedy(plain(found), wanted);
  if (wanted?.what === 'boolean' || wanted?.what === 'choice') return wordRemedy(plain(found), wanted);
  const below = placeBelow(schema, issue.path, subject.value);
  return issue.code === 'invalid_type' && below !== ''
    ? `take it out, and ${remedyFor(issue.path, subject, below)}`
    : remedyFor(issue.path, subject, below);
}

function isValueAsText(issue: z.core.$ZodIssue, found: unknown): found is string {
  if (issue.code !== 'invalid_type' || typeof found !== 'string') return false;
  return issue.expected === 'boolean'
    ? /^(?:true|false)$/.test(found)
    : ['number', 'int'].includes(issue.expected) && /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(found);
}

/** A missing map is asked for by what it must hold. */
function missingProblems(
  path: Path,
  schema: z.ZodType,
  subject: Subject,
  limit?: string,
): readonly Problem[] {
  const below = suppliedBelow(subject.kind, path);
  return (below.length === 0 ? [path] : below).map((missing) =>
    missingProblem(missing, subject, limit, placeBelow(schema, missing, subject.value)),
  );
}

function missingProblem(path: Path, subject: Subject, limit = 'is required', below = ''): Problem {
  const key = spell(rootOf(subject.kind), path);
  return { file: subject.file, key, value: undefined, limit, remedy: remedyFor(path, subject, below) };
}

/** `below`: what the command adds to the key to set one of what it holds. */
function remedyFor(path: Path, subject: Subject, below: string): string {
  const { kind, file } = subject;
  if (kind === 'model' || kind === 'image') return 'write it there';
  const key = spell(rootOf(kind), path) + below;
  return (
    howToSupply(kind, path, subject) ??
    `set it: pulumi config set --path '${key}' <value> ${optionsFor(file)}`
  );
}

/** The key of a stack file below which the value lies; empty for a file that is the value as a whole. */
function rootOf(kind: FileKind): string {
  return kind === 'host' || kind === 'shape' ? `slot:${kind}` : '';
}

function limitOf(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${typeNames[issue.expected] ?? issue.expected}`;
    case 'too_small':
      if (issue.origin === 'string' || issue.origin === 'array') return notEmpty;
      return `must be ${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}`;
    case 'too_big':
      return `must be ${issue.inclusive ? 'at most' : 'less than'} ${issue.maximum}`;
    case 'invalid_value':
      return `must be ${listed(issue.values.map(String))}`;
    default:
      return issue.message;
  }
}

/** No text and no list of these schemas has another least length than 1. */
const notEmpty = 'must not be empty';

const typeNames: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
  record: 'a map',
};

/** What is below a list or a map is not said: one of it may be a secret. */
function plain(value: unknown): string {
  if (value !== null && typeof value === 'object') return Array.isArray(value) ? 'a list' : 'a map';
  return String(value);
}

/** What no schema sees: secrets, as `pulumi config set --secret` writes them, and keys that zod passes over. */
function refusedKeys(subject: Subject): readonly Problem[] {
  const { file, kind, value } = subject;
  const look = (inner: unknown, path: Path): readonly Problem[] => {
    if (inner === null || typeof inner !== 'object') return [];
    const refuse = (at: Path, limit: string, remedy: string): readonly Problem[] => [
      { file, key: spell(rootOf(kind), at), value: undefined, limit, remedy },
    ];
    if (Object.hasOwn(inner, 'secure')) {
      return refuse(
        path,
        'must not be a secret: it would reach the state and the unit file in plain text',
        kind === 'host' ? 'name the ssh key by agent or path' : 'leave it out',
      );
    }
    const entries = Array.isArray(inner) ? [...inner.entries()] : Object.entries(inner);
    return entries.flatMap(([key, below]) =>
      key === '__proto__'
        ? refuse(
            [...path, key],
            'must not be a key: JavaScript has a meaning of its own for it',
            'write another key',
          )
        : look(below, [...path, key]),
    );
  };
  return look(value, []);
}

/** @throws ConfigurationError with all problems, if there are any */
export function dataOf<T>(validated: Validated<T>, further: readonly Problem[] = []): T {
  // A disputed word is often also of a wrong type: one complaint a key.
  const keys = new Set(further.map(({ key }) => key));
  const problems = [...further, ...(validated.problems ?? []).filter(({ key }) => !keys.has(key))];
  if (problems.length > 0) throw new ConfigurationError(problems);
  return validated.data as T;
}
