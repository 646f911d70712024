import * as z from 'zod';
import { byteSizeSchema } from './quantities.ts';
import { nameSchema, nonEmptyLineSchema } from './text.ts';

/** What is on record of a model, whichever shape serves it; sizes by this schema. */
function modelSchemaWith<S extends z.ZodType<number>>(_bytes: S) {
  return z.strictObject({
    name: nonEmptyLineSchema,
    /** By which the rules know it. */
    family: nameSchema,
    /** Some of its layers attend linearly and keep a state instead of a cache; default false. */
    hybrid: z.boolean().default(false),
    /** Parsers that understand its tool calls, the one to use first; default: not known. */
    toolParsers: z.array(nonEmptyLineSchema).default([]),
    /** Parsers that tell its thinking from its answer, the one to use first; default: not known. */
    reasoningParsers: z.array(nonEmptyLineSchema).default([]),
  });
}

/** As it is written in `models/<name>.yaml`, sizes with their units. */
export const modelFileSchema = modelSchemaWith(byteSizeSchema.transform(({ bytes }) => bytes));

/** As a release carries it, sizes in bytes. */
export const modelSchema = modelSchemaWith(z.number().nonnegative());
export type Model = z.infer<typeof modelSchema>;
