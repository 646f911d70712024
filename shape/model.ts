import * as z from 'zod';
import { positiveByteSizeSchema } from './quantities.ts';
import { nameSchema, nonEmptyLineSchema } from './text.ts';

/** What is on record of a model, whichever shape serves it; sizes by this schema. */
function modelSchemaWith<S extends z.ZodType<number>>(bytes: S) {
  return z.strictObject({
    name: nonEmptyLineSchema.describe('As people call it.'),
    family: nameSchema.describe('By which the rules know it.'),
    hybrid: z
      .boolean()
      .default(false)
      .describe('Some of its layers attend linearly and keep a state instead of a cache.'),
    thinks: z
      .boolean()
      .default(true)
      .describe('Its answers hold thinking; false: it needs no reasoning parser.'),
    callsTools: z.boolean().default(true).describe('It can call tools; false: it needs no tool parser.'),
    toolParsers: z
      .array(nonEmptyLineSchema)
      .default([])
      .describe('Parsers that understand its tool calls, the one to use first; empty: not known.'),
    reasoningParsers: z
      .array(nonEmptyLineSchema)
      .default([])
      .describe('Parsers that tell its thinking from its answer, the one to use first; empty: not known.'),
    experts: z
      .strictObject({
        layers: z.int().positive().describe('Layers that have experts.'),
        perLayer: z.int().positive().describe('Experts of one layer.'),
        perToken: z.int().positive().optional().describe('Experts that a token goes through.'),
      })
      .optional()
      .describe('Of a mixture of experts; without it: not known, or it is none.'),
    memory: memorySchemaWith(bytes)
      .optional()
      .describe('What its engine was seen to need when its experts are offloaded; without it: nothing is.'),
  });
}

/** Measured in bytes with one number of ranks; per rank unless said. */
function memorySchemaWith<S extends z.ZodType<number>>(bytes: S) {
  /** Bytes that grow with a number of tokens, beside what was read off the engine. */
  const law = z.strictObject({
    bytesPerToken: bytes.describe('Added by each token.'),
    fixed: bytes
      .optional()
      .describe('Needed at any number of tokens; without it: not known apart, counted as none.'),
    recorded: z
      .array(
        z.strictObject({
          tokens: z.int().positive().describe('At this number of tokens.'),
          bytes: bytes.describe('This was read off.'),
        }),
      )
      .default([])
      .describe('What the engine said or was seen to take, kept beside what the law gives.'),
  });
  const costOf = {
    method: nonEmptyLineSchema.describe('Method of speculative decoding.'),
    maxModelLength: z.int().positive().optional().describe('At this length; without it: not on record.'),
  };
  return z.strictObject({
    tensorParallel: z.int().positive().describe('Ranks with which all of this was measured.'),
    gpuMemory: bytes.optional().describe('Of each GPU on which it was measured.'),
    expertSlot: bytes.describe('Of one expert, on one rank.'),
    pinned: z
      .strictObject({
        recorded: bytes.optional().describe('Host memory that was pinned by one rank.'),
        roundedToPowerOfTwo: z
          .boolean()
          .default(false)
          .describe('The allocator rounds each pinned block up to a power of two.'),
        expertsPerBlock: z
          .int()
          .positive()
          .default(1)
          .describe(
            "Experts that are pinned as one block: 1 for a block an expert, a layer's for a block a layer.",
          ),
      })
      .prefault({})
      .describe('Host memory that holds the experts.'),
    arenas: z
      .array(
        z.strictObject({
          utilization: z.number().gt(0).lte(1).optional().describe('With this part of the GPU claimed.'),
          preciseMemory: z.boolean().optional().describe('With or without the precise plan of the arena.'),
          maxModelLength: z.int().positive().optional().describe('At this length.'),
          maxBatchedTokens: z.int().positive().optional().describe('With this many tokens in one step.'),
          speculation: nonEmptyLineSchema
            .optional()
            .describe('With this method of speculative decoding; without it: none was used.'),
          arena: bytes.describe('GPU memory that held experts.'),
          slots: z.int().positive().optional().describe('Experts that were said to fit into it.'),
        }),
      )
      .default([])
      .describe('Arenas that were seen. What a shape has in another way is not known of its arena.'),
    speculationCost: z
      .array(
        z.union(
          [
            z.strictObject({ ...costOf, arena: bytes.describe('What the arena was said to lose.') }),
            z.strictObject({
              ...costOf,
              from: bytes.describe('The arena without it, where the loss itself is not on record.'),
              to: bytes.describe('The arena with it.'),
            }),
          ],
          'must have arena, or from and to',
        ),
      )
      .default([])
      .describe('What speculative decoding was seen to cost.'),
    reserve: law.describe('KV cache that the plan of the experts leaves room for, by length.'),
    drafterReserve: law
      .extend({
        methods: z
          .array(nonEmptyLineSchema)
          .min(1)
          .describe('Methods that bring a drafter with a cache of its own.'),
      })
      .optional()
      .describe('The same where a drafter has a cache of its own.'),
    cap: law.describe('KV cache that the engine allows itself, by length.'),
    need: law.describe('KV cache without which it does not boot, by length.'),
    mtpNeed: law.optional().describe('The same with multi-token prediction.'),
    activation: law
      .extend({
        killed: z
          .strictObject({
            tokens: z.int().positive().describe('Batched tokens.'),
            utilization: z.number().gt(0).lte(1).describe('Part of the GPU that was claimed.'),
          })
          .optional()
          .describe('A boot that died of it.'),
      })
      .describe('GPU memory at the peak of the profile run, by batched tokens.'),
  });
}

/** As it is written in `models/<name>.yaml`, sizes with their units. */
export const modelFileSchema = modelSchemaWith(positiveByteSizeSchema.transform(({ bytes }) => bytes));

/** As a release carries it, sizes in bytes. */
export const modelSchema = modelSchemaWith(z.number().positive());
export type Model = z.infer<typeof modelSchema>;
export type MemoryRecord = NonNullable<Model['memory']>;
