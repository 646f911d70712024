import * as z from 'zod';

/**
 * Requests with expected answers that prove the served surface. They are data: the host runs them after a
 * cutover, the operator's side can run the same ones at any time.
 */
export const checkSchema = z.discriminatedUnion('kind', [
  /** `/v1/models` lists exactly these names with this length. */
  z.strictObject({ kind: z.literal('models') }),
  /** A chat completion under this name, whose whole body arrives and whose text is not empty. */
  z.strictObject({
    kind: z.literal('completion'),
    servedName: z.string(),
    prompt: z.string(),
    /** Case-insensitive part of the answer; without it any text that is not one repeated character. */
    expect: z.string().optional(),
    maxTokens: z.int().positive(),
    /** Name of the field that must hold the thinking, which `content` must not. */
    reasoningField: z.enum(['reasoning', 'reasoning_content']).optional(),
  }),
  /** A request with the `get_weather` tool ends with `finish_reason: tool_calls` and parsed arguments. */
  z.strictObject({ kind: z.literal('tool-call'), servedName: z.string(), maxTokens: z.int().positive() }),
]);
export type Check = z.infer<typeof checkSchema>;
