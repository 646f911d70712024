import { distance } from 'fastest-levenshtein';
import * as z from 'zod';
import { type Form, forms } from './forms.ts';
import { at } from './operator-supplied.ts';
import { type Path, spell } from './problems.ts';

/** The keys that a schema knows for the object at this path of the value. */
export function knownKeys(schema: z.ZodType, path: Path, value: unknown): readonly string[] {
  const found = schemasAt(schema, path, value).map(innermost);
  return [...new Set(found.flatMap(keysOf))];
}

function keysOf(schema: z.ZodType): readonly string[] {
  if (schema instanceof z.ZodObject) return Object.keys(schema.shape);
  return schema instanceof z.ZodRecord && schema.keyType instanceof z.ZodEnum
    ? schema.keyType.options.map(String)
    : [];
}

/** Each name that a schema knows below an object, with the path of its highest key; maps of any keys are left out. */
export function namesBelow(schema: z.ZodType, root: string): ReadonlyMap<string, string> {
  const inner = innermost(schema);
  const options = inner instanceof z.ZodUnion ? (inner.options as readonly z.ZodType[]) : [];
  const fields = inner instanceof z.ZodObject ? Object.entries(inner.shape as Record<string, z.ZodType>) : [];
  const paths = fields.map(([name, field]) => ({ name, field, path: spell(root, [name]) }));
  return new Map([
    ...paths.flatMap(({ field, path }) => [...namesBelow(field, path)]),
    ...options.flatMap((option) => [...namesBelow(option, root)]),
    ...paths.map(({ name, path }): [string, string] => [name, path]),
  ]);
}

/** The form of the values at this path, if it has a name; of a union's that of the first which has one. */
export function formAt(schema: z.ZodType, path: Path, value: unknown): Form | undefined {
  return schemasAt(schema, path, value)
    .flatMap(layersOf)
    .map((layer) => forms.get(layer))
    .find((form) => form !== undefined);
}

/** Whether the schema does without a value at this path. */
export function mayBeLeftOut(schema: z.ZodType, path: Path, value: unknown): boolean {
  return schemasAt(schema, path, value).some((found) => layersOf(found).some(isOptional));
}

/**
 * What follows a key so that `pulumi config set --path` sets one of what it holds: `[0]` of a list, `.<variable>` of a
 * map; empty for a value of its own.
 */
export function placeBelow(schema: z.ZodType, path: Path, value: unknown): string {
  const [found] = schemasAt(schema, path, value).map(innermost);
  return found === undefined ? '' : placeIn(found);
}

function placeIn(schema: z.ZodType): string {
  if (schema instanceof z.ZodArray) return `[0]${placeIn(innermost(schema.element as z.ZodType))}`;
  if (schema instanceof z.ZodObject) {
    const keys = Object.keys(schema.shape);
    // A map that is of one of several kinds is nothing before it says of which.
    if (keys.length === 1 || schema.shape.kind instanceof z.ZodLiteral) return `.${keys[0]}`;
    return `.<${keys.join('|')}>`;
  }
  if (!(schema instanceof z.ZodRecord)) return '';
  const name = forms.get(schema.keyType as z.ZodType)?.name ?? 'key';
  return `.<${name}>${placeIn(innermost(schema.valueType as z.ZodType))}`;
}

/** What a schema wants of a word that is not yet a value. */
export type Wanted =
  | { readonly what: 'boolean' | 'text' | 'map' }
  | { readonly what: 'number'; readonly takes: (number: number) => boolean }
  | { readonly what: 'list'; readonly takes: (item: string) => boolean }
  | { readonly what: 'choice'; readonly choices: readonly string[] }
  | { readonly what: 'form'; readonly form: Form };

/** What is wanted at this path in place of this word; undefined: nothing that is known. */
export function wantedAt(schema: z.ZodType, path: Path, value: unknown, word: string): Wanted | undefined {
  const found = schemasAt(schema, path, value);
  const form = formAt(schema, path, value);
  if (found.some((one) => one.safeParse(word).success)) return { what: 'text' };
  const inner = found.map(innermost);
  if (inner.some((one) => one instanceof z.ZodBoolean)) return { what: 'boolean' };
  if (inner.some((one) => one instanceof z.ZodNumber)) {
    return { what: 'number', takes: (number) => found.some((one) => one.safeParse(number).success) };
  }
  const choices = inner.flatMap((one) => (one instanceof z.ZodEnum ? one.options.map(String) : []));
  if (choices.length > 0) return { what: 'choice', choices };
  if (form !== undefined) return { what: 'form', form };
  if (inner.some((one) => one instanceof z.ZodArray)) {
    return { what: 'list', takes: (item) => found.some((one) => one.safeParse([item]).success) };
  }
  return inner.some((one) => one instanceof z.ZodObject || one instanceof z.ZodRecord)
    ? { what: 'map' }
    : undefined;
}

/** The schemas at this path of the value: of a union all that the value may mean. */
function schemasAt(schema: z.ZodType, path: Path, value: unknown): readonly z.ZodType[] {
  const inner = innermost(schema);
  const [first, ...rest] = path;
  if (inner instanceof z.ZodUnion && (first !== undefined || forms.get(inner) === undefined)) {
    const options = inner.options as readonly z.ZodType[];
    const isMap = value !== null && typeof value === 'object';
    const chosen = isMap ? options.filter((option) => mayMean(option, value)) : options;
    return chosen.flatMap((option) => schemasAt(option, path, value));
  }
  if (first === undefined) return [schema];
  const below = at(value, [first]);
  const field = fieldOf(inner, first);
  return field === undefined ? [] : schemasAt(field, rest, below);
}

function fieldOf(schema: z.ZodType, key: PropertyKey): z.ZodType | undefined {
  if (schema instanceof z.ZodObject)
    return Object.hasOwn(schema.shape, key)
      ? (schema.shape as Record<PropertyKey, z.ZodType>)[key]
      : undefined;
  if (schema instanceof z.ZodArray) return schema.element as z.ZodType;
  return schema instanceof z.ZodRecord ? (schema.valueType as z.ZodType) : undefined;
}

/** Whether an object of this `kind` is meant; an object without a known kind may mean any. */
function mayMean(option: z.ZodType, value: unknown): boolean {
  const kind = option instanceof z.ZodObject ? option.shape.kind : undefined;
  return !(kind instanceof z.ZodLiteral) || kind.safeParse(at(value, ['kind'])).success;
}

/** A schema and what it wraps, from the outside in. */
function layersOf(schema: z.ZodType): readonly z.ZodType[] {
  if (isOptional(schema)) return [schema, ...layersOf(schema.unwrap() as z.ZodType)];
  return schema instanceof z.ZodPipe ? [schema, ...layersOf(schema.in as z.ZodType)] : [schema];
}

function isOptional(schema: z.ZodType): schema is z.ZodOptional | z.ZodDefault | z.ZodPrefault {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault;
}

function innermost(schema: z.ZodType): z.ZodType {
  return layersOf(schema).at(-1) ?? schema;
}

/** The known name that is nearest to a misspelt one, if it is near enough to be meant. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const [best] = known
    .map((candidate) => ({ candidate, steps: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ steps }) => steps <= Math.max(2, name.length * 0.4))
    .sort((a, b) => a.steps - b.steps);
  return best?.candidate;
}

export function unknownKeyRemedy(name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  return meant === undefined ? `known here: ${known.join(', ')}` : `did you mean ${meant}?`;
}
