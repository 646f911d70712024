import * as z from 'zod';
import { engineSchema } from './engines/engine.ts';
import { byteSizeSchema, durationSchema } from './quantities.ts';
import { ruleIdSchema } from './rules/rule-ids.ts';
import { absolutePathSchema, hostPathSchema, lineSchema, nameSchema, nonEmptyLineSchema } from './text.ts';

/** There is none for open files: podman raises its own, which the engine inherits, to 1,048,576 whatever it was. */
const limitsSchema = z.strictObject({
  /** Memory that the engine may pin: `infinity` or a size; default 8 MiB, systemd's own. */
  memlock: z
    .union([z.literal('infinity'), byteSizeSchema], {
      error: "must be infinity or text: a number and its unit, e.g. '64 MiB'",
    })
    .prefault('8 MiB'),
  /** Processes and threads; default `infinity`. */
  pids: z
    .union([z.literal('infinity'), z.int().positive()], {
      error: 'must be infinity or a whole number above 0',
    })
    .default('infinity'),
});

const deadlinesSchema = z.strictObject({
  /** Wait for running requests to end before the engine is stopped; default none. */
  drain: durationSchema.prefault('0 s'),
  /** From the stop to an empty slot; default 1 min. */
  stop: durationSchema.prefault('1 min'),
  /** From the start to the first healthy answer; default 20 min. */
  boot: durationSchema.prefault('20 min'),
  /** Each check's whole answer; default 3 min. */
  check: durationSchema.prefault('3 min'),
  /** A trial is committed when the engine still stands this long after its checks; it answers meanwhile; default 10 s. */
  settle: durationSchema.prefault('10 s'),
});

const variableSchema = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of a variable');

/** `slot:shape` of `Pulumi.<shape>.yaml`: a complete description of what is served. */
export const shapeSchema = z.strictObject({
  /** Name of the host's stack. */
  host: nameSchema,
  /** Part of the container's name; default: the name of the shape's stack. */
  shortName: nameSchema.optional(),
  engine: engineSchema,
  payload: z.strictObject({
    /** Model folder on the host, absolute or below the host's models root; read-only in the container. */
    folder: hostPathSchema,
    /** File in it that the engine is pointed at, e.g. the first of split GGUF files; default: the folder. */
    entry: hostPathSchema.optional(),
    /** `quant_method` that its `config.json` must have, e.g. `auto-round`; default: nothing is expected. */
    quantization: nonEmptyLineSchema.optional(),
  }),
  /** Name of the file in `models/` with what is on record of the model; default: nothing is. */
  model: nameSchema.optional(),
  /** Folders that the engine may write, by name; absolute or below the host's first state root; default none. */
  state: z.record(nameSchema, hostPathSchema).default({}),
  /** Further folders or files of the host in the container, read-only; default none. */
  mounts: z
    .array(
      z.strictObject({
        /** Absolute or below the host's models root. */
        source: hostPathSchema,
        target: absolutePathSchema,
      }),
    )
    .default([]),
  /**
   * Files below `patches/`, applied in this order; a later one may change what an earlier one has changed; default
   * none. Each says in its header what it changes.
   */
  patches: z.array(hostPathSchema).default([]),
  /** Exactly as the engine gets it; default none. */
  environment: z.record(variableSchema, lineSchema).default({}),
  /**
   * Variables whose values are in `slot:secrets` and reach the engine as podman secrets; default none. Another
   * version is another engine: change it with the value.
   */
  secrets: z.record(variableSchema, z.strictObject({ version: nameSchema })).default({}),
  /** Rules that do not hold for this shape: the rule's id, and why; default none. */
  exceptions: z.partialRecord(ruleIdSchema, nonEmptyLineSchema).default({}),
  limits: limitsSchema.prefault({}),
  deadlines: deadlinesSchema.prefault({}),
});
export type ShapeConfig = z.infer<typeof shapeSchema>;
