import * as z from 'zod';
import { engineSchema } from './engines/engine.ts';
import { forms } from './forms.ts';
import { payloadExpectationSchema } from './payload-expectation.ts';
import { byteSizeSchema, durationSchema, positiveDurationSchema } from './quantities.ts';
import { isUnconditional, ruleIdSchema } from './rules/rule-ids.ts';
import { secretVersionSchema } from './secret-shapes.ts';
import { absolutePathSchema, hostPathSchema, lineSchema, nameSchema, nonEmptyLineSchema } from './text.ts';

/**
 * Chosen, not measured: server, scheduler and each rank are processes whose libraries start threads by the number of
 * cores, and podman's own default is 2,048. Whoever writes fewer than this means something else.
 */
const fewestPids = 256;

/** Linux: PID_MAX_LIMIT on 64 bits; podman and systemd take a larger number and nothing comes of it. */
const mostPids = 4_194_304;

const notPids = `must be infinity or a whole number from ${fewestPids} to ${mostPids}`;

const limitsSchema = z.strictObject({
  memlock: z
    .union([z.literal('infinity'), byteSizeSchema], 'must be infinity or a size with its unit')
    .register(forms, {
      name: '`infinity` or size',
      limit: 'must be infinity or a size with its unit',
      examples: ['infinity', '64 MiB'],
      remedy: "write infinity where there is to be no limit, else a size with its unit, e.g. '64 MiB'",
    })
    .prefault('8 MiB')
    .describe("Memory that the engine may pin. The default is systemd's own."),
  pids: z
    .union([z.literal('infinity'), z.int().min(fewestPids).max(mostPids)], notPids)
    .register(forms, {
      name: '`infinity` or whole number',
      limit: notPids,
      examples: ['infinity', '4096'],
      remedy: 'write infinity where there is to be no limit, else a plain number without quotes, e.g. 4096',
    })
    .default('infinity')
    .describe('Processes and threads.'),
});

const deadlinesSchema = z.strictObject({
  drain: durationSchema
    .prefault('0 s')
    .describe('Wait for running requests to end before the engine is stopped.'),
  stop: positiveDurationSchema.prefault('1 min').describe('From the stop to an empty slot.'),
  boot: positiveDurationSchema
    .prefault('20 min')
    .describe(
      'From the start to the first healthy answer. vLLM gives up by itself after 10 min unless ' +
        '`environment.VLLM_ENGINE_READY_TIMEOUT_S` says the seconds of this: the rule `ready-timeout` refuses a shape of ' +
        'vLLM that has one without the other.',
    ),
  check: positiveDurationSchema.prefault('3 min').describe("Each check's whole answer."),
  settle: durationSchema
    .prefault('10 s')
    .describe(
      'A trial is committed when the engine still stands this long after its checks; it answers meanwhile.',
    ),
});

const notVariable = 'must be the name of a variable: A-Z a-z 0-9 _, not a digit first';

export const variableSchema = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, notVariable)
  .register(forms, {
    name: 'variable',
    limit: notVariable,
    examples: ['PYTORCH_CUDA_ALLOC_CONF'],
    fitsAnyMeaning: false,
  });

/** A part of a split model, by its number. */
const splitPart = /-(0*)(\d+)(-of-\d+(?:\.[^/]*)?)$/;

/** The engine finds the other parts by the first. */
const entrySchema = hostPathSchema.superRefine((entry, context) => {
  const [, zeros = '', part = '1'] = splitPart.exec(entry) ?? [];
  if (Number(part) === 1) return;
  const first = '1'.padStart(zeros.length + part.length, '0');
  context.addIssue({
    code: 'custom',
    message: 'must be the first part of what is split',
    params: { remedy: `write ${entry.replace(splitPart, `-${first}$3`)}` },
  });
});

/** `slot:shape` of `Pulumi.<shape>.yaml`: a complete description of what is served. */
export const shapeSchema = z.strictObject({
  host: nameSchema.describe("Name of the host's stack."),
  shortName: nameSchema
    .optional()
    .describe("Part of the container's name; without it the name of the shape's stack."),
  engine: engineSchema.describe('The program that serves, and how.'),
  payload: z
    .strictObject({
      folder: hostPathSchema.describe(
        "Model folder on the host, absolute or below the host's models root; read-only in the container.",
      ),
      entry: entrySchema
        .optional()
        .describe(
          'File in it that the engine is pointed at, e.g. the first of split GGUF files, or a folder in it, e.g. the ' +
            'snapshot in a cache of Hugging Face; without it the folder itself.',
        ),
      quantization: nonEmptyLineSchema
        .optional()
        .describe('`quant_method` that its `config.json` must have, e.g. `auto-round`.'),
      verify: z
        .enum(['inventory', 'hashes'])
        .default('inventory')
        .describe(
          'What must hold before a cutover, of the payload and of every mounted folder. `inventory`: files, headers ' +
            'and sizes fit together; weights are not read. `hashes`: besides, each file has the hash of its manifest.',
        ),
      expected: payloadExpectationSchema
        .optional()
        .describe('What is on record of the folder; a payload that is another is refused.'),
    })
    .describe('The model that is served.'),
  model: nameSchema.optional().describe('Name of the file in `models/` with what is on record of the model.'),
  state: z
    .record(nameSchema, hostPathSchema)
    .default({})
    .describe(
      "Folders that the engine may write, by name; absolute or below the host's first state root. They survive " +
        'every cutover.',
    ),
  mounts: z
    .array(
      z.strictObject({
        source: hostPathSchema.describe("On the host: absolute or below the host's models root."),
        target: absolutePathSchema.describe('In the container.'),
        expected: payloadExpectationSchema
          .optional()
          .describe('What is on record of it, e.g. of a drafter; another one is refused.'),
      }),
    )
    .default([])
    .describe('Further folders or files of the host in the container, read-only.'),
  patches: z
    .array(hostPathSchema)
    .default([])
    .describe(
      'Files below `patches/`, applied in this order; a later one may change what an earlier one has changed. ' +
        'Each says in its header what it changes.',
    ),
  environment: z
    .record(variableSchema, lineSchema)
    .default({})
    .describe(
      'Variables of the engine, exactly as it gets them. vLLM needs `VLLM_ENGINE_READY_TIMEOUT_S` here, in seconds, ' +
        'where `deadlines.boot` is longer than its own 10 min, as the default is.',
    ),
  secrets: z
    .record(
      variableSchema,
      z.strictObject({
        version: secretVersionSchema.describe(
          'Of the value. Another version is another engine: change it with the value.',
        ),
      }),
    )
    .default({})
    .describe('Variables whose values are in `slot:secrets` and reach the engine as podman secrets.'),
  importGuard: variableSchema
    .optional()
    .describe(
      'Variable by which a hook that Python imports at its start (`sitecustomize`) sees that it runs already. ' +
        'Without one such a hook is refused.',
    ),
  exceptions: z
    .partialRecord(
      ruleIdSchema.register(forms, {
        name: 'rule',
        limit: 'must be the id of a rule',
        examples: ['hybrid-mtp-prefix-caching'],
      }),
      nonEmptyLineSchema,
    )
    .superRefine((exceptions, context) => {
      for (const id of Object.keys(exceptions).filter(isUnconditional)) {
        const message = 'must not be there: this rule holds for every shape';
        context.addIssue({ code: 'custom', path: [id], message, params: { remedy: 'take it out' } });
      }
    })
    .default({})
    .describe("Rules that do not hold for this shape: the rule's id, and why. Printed at every preview."),
  limits: limitsSchema
    .prefault({})
    .describe(
      'What the kernel allows the engine. None for open files: podman raises its own, which the engine inherits, ' +
        'to 1,048,576 whatever it was.',
    ),
  deadlines: deadlinesSchema.prefault({}).describe('How long each part of a cutover may take.'),
});
export type ShapeConfig = z.infer<typeof shapeSchema>;
