import { z } from 'zod';
import { lineSchema, nonEmptyLineSchema } from '../text.ts';
import { imageSchema } from './image.ts';

export const r9vSchema = z.strictObject({
  kind: z.literal('r9v'),
  image: imageSchema,
  /** The name by which clients call the model. */
  servedName: nonEmptyLineSchema,
  /** Tokens of prompt and answer together, as `/v1/models` must show them. */
  maxModelLength: z.int().positive(),
  /** Part of each GPU's memory that must be free before it starts, 0 to 1; default 0.9. */
  gpuMemoryUtilization: z.number().gt(0).lte(1).default(0.9),
  /**
   * All arguments in order. Replaced within them: `{payload}` and `{state:<name>}` by paths in the container,
   * `{port}`, `{maxModelLength}`, `{servedName}`, `{publicName}` and `{servedNames}` (all, joined by commas).
   * Any other text, braces included, stays as it is.
   */
  arguments: z.array(lineSchema),
  /** Default `/health`. */
  healthPath: z.string().startsWith('/').default('/health'),
  /** Requests with tools are answered, so a tool call is checked; default false. */
  tools: z.boolean().default(false),
  /** Thinking has a field of its own, so that is checked; default false. */
  reasoning: z.boolean().default(false),
  /** Default `private`. */
  ipc: z.enum(['host', 'private']).default('private'),
});
export type R9vConfig = z.infer<typeof r9vSchema>;
