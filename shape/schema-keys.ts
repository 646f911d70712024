import { distance } from 'fastest-levenshtein';
import * as z from 'zod';
import { at } from './operator-supplied.ts';
import type { Path } from './problems.ts';

/** The keys that a schema knows for the object at this path of the value. */
export function knownKeys(schema: z.ZodType, path: Path, value: unknown): readonly string[] {
  const inner = unwrap(schema);
  if (inner instanceof z.ZodDiscriminatedUnion || inner instanceof z.ZodUnion) {
    const options = inner.options as readonly z.ZodType[];
    const chosen = options.filter((option) => mayMean(option, value));
    return [...new Set(chosen.flatMap((option) => knownKeys(option, path, value)))];
  }
  const [first, ...rest] = path;
  if (first === undefined) return inner instanceof z.ZodObject ? Object.keys(inner.shape) : [];
  const below = at(value, [first]);
  if (inner instanceof z.ZodObject) {
    const field = (inner.shape as Record<PropertyKey, z.ZodType | undefined>)[first];
    return field === undefined ? [] : knownKeys(field, rest, below);
  }
  if (inner instanceof z.ZodArray) return knownKeys(inner.element as z.ZodType, rest, below);
  if (inner instanceof z.ZodRecord) return knownKeys(inner.valueType as z.ZodType, rest, below);
  return [];
}

/** Whether an object of this `kind` is meant; an object without a known kind may mean any. */
function mayMean(option: z.ZodType, value: unknown): boolean {
  const kind = option instanceof z.ZodObject ? option.shape.kind : undefined;
  return !(kind instanceof z.ZodLiteral) || kind.safeParse(at(value, ['kind'])).success;
}

function unwrap(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault) {
    return unwrap(schema.unwrap() as z.ZodType);
  }
  return schema instanceof z.ZodPipe ? unwrap(schema.in as z.ZodType) : schema;
}

/** The known name that is nearest to a misspelt one, if it is near enough to be meant. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const [best] = known
    .map((candidate) => ({ candidate, steps: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ steps }) => steps <= Math.max(2, name.length / 3))
    .sort((a, b) => a.steps - b.steps);
  return best?.candidate;
}

export function unknownKeyRemedy(name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  return meant === undefined ? `known here: ${known.join(', ')}` : `did you mean ${meant}?`;
}
