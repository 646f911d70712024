import * as z from 'zod';
import { forms } from '../forms.ts';
import { isJsonObject } from '../json.ts';
import { durationSchema, positiveByteSizeSchema } from '../quantities.ts';
import { secretVersionSchema } from '../secret-shapes.ts';
import { absolutePathSchema, nameSchema } from '../text.ts';
import { apiKeyVariables } from './api-key.ts';
import { extraArgumentsSchema } from './extra-arguments.ts';
import { flagValueSchema, servedNameSchema } from './flag-value.ts';
import { imageSchema } from './image.ts';
import type { EngineFault, EngineInvocation, EnginePlace } from './invocation.ts';
import { disputeOverJson, holdsUnsafeNumber, jsonIn, plainJson, plainNumber } from './plain-json.ts';
import { speculativeFaults } from './speculative.ts';
import { countSchema } from './token-count.ts';
import { vllmCommandLine } from './vllm-command-line.ts';

const notSpeculative = 'must be a map, or its JSON without quotes around it: it becomes --speculative-config';

const speculativeSchema = z
  .union([z.record(z.string(), z.json()), z.string()], notSpeculative)
  .register(forms, {
    name: 'map or JSON',
    limit: notSpeculative,
    examples: ['{method: mtp, num_speculative_tokens: 4}'],
    remedy: 'write it as a map: {method: mtp, num_speculative_tokens: 4}',
  })
  .transform((written, context): Readonly<Record<string, unknown>> => {
    const map = typeof written === 'string' ? jsonIn(written) : written;
    const dispute =
      typeof written === 'string'
        ? disputeOverJson(written)
        : holdsUnsafeNumber(written)
          ? { limit: 'must not hold a number that JavaScript cannot hold', remedy: 'write a smaller one' }
          : undefined;
    if (isJsonObject(map) && dispute === undefined) return map;
    const { limit: message, remedy } = dispute ?? { limit: notSpeculative, remedy: undefined };
    context.addIssue({ code: 'custom', message, ...(remedy !== undefined && { params: { remedy } }) });
    return z.NEVER;
  })
  .superRefine((map, context) => {
    for (const { key, message, remedy } of speculativeFaults(map)) {
      context.addIssue({ code: 'custom', path: key === undefined ? [] : [key], message, params: { remedy } });
    }
  });

const profilerSchema = z.strictObject({
  state: nameSchema.describe('Which folder of `slot:shape.state` the traces are written to.'),
  withStack: z
    .boolean()
    .default(false)
    .describe(
      'Traces hold the stack of every call. On record: with stacks the profiler does not stop, and its trace grows ' +
        'to tens of GB; a rule refuses it.',
    ),
});

const telemetrySchema = z.strictObject({
  tracesEndpoint: flagValueSchema
    .optional()
    .describe(
      'Where OpenTelemetry traces are sent, e.g. `grpc://localhost:4317` (`--otlp-traces-endpoint`); without it none are.',
    ),
  detailedTraces: z
    .array(z.enum(['model', 'worker', 'all']))
    .default([])
    .describe('Parts whose traces are detailed, which costs speed (`--collect-detailed-traces`).'),
  statistics: z
    .boolean()
    .default(true)
    .describe(
      'The engine logs throughput and `Mean acceptance length`, and counts for `/metrics`; false is `--disable-log-stats`.',
    ),
});

export const vllmSchema = z.strictObject({
  kind: z.literal('vllm').describe('vLLM, or a fork of it.'),
  image: imageSchema.describe('Its entrypoint must be `vllm serve`, as that of the official images is.'),
  servedName: servedNameSchema.describe(
    "The name by which clients call the model, and which answers and metrics carry; the host's `publicName` follows it.",
  ),
  tensorParallel: z
    .int()
    .positive()
    .default(1)
    .describe('GPUs that share the model (`--tensor-parallel-size`).'),
  maxModelLength: countSchema.describe('Tokens of prompt and answer together (`--max-model-len`).'),
  maxSequences: countSchema
    .optional()
    .describe("Requests at one time (`--max-num-seqs`); without it the engine's own number."),
  maxBatchedTokens: countSchema
    .optional()
    .describe(
      "Tokens of one step (`--max-num-batched-tokens`); without it the engine's own number. On record: 8,192 killed " +
        'two boots of GLM in the profile run.',
    ),
  gpuMemoryUtilization: z
    .number()
    .gt(0)
    .lte(1)
    .describe("Part of each GPU's memory that the engine claims, 0 to 1 (`--gpu-memory-utilization`)."),
  kvCacheDtype: flagValueSchema
    .default('auto')
    .describe('Type of the KV cache (`--kv-cache-dtype`); `auto` is the type of the weights.'),
  kvCacheMemory: positiveByteSizeSchema
    .optional()
    .describe(
      "Size of the KV cache on each GPU (`--kv-cache-memory-bytes`); without it what the engine's own plan gives.",
    ),
  expertOffload: z
    .boolean()
    .default(false)
    .describe(
      'Experts live in pinned host memory and are swapped in (`--enable-expert-offload`, of the recorded fork).',
    ),
  expertPreciseMemory: z
    .boolean()
    .default(false)
    .describe(
      'Sizes the arena of swapped experts to the byte (`--expert-precise-memory`, of the recorded fork): 14.51 GiB ' +
        'instead of 13.08 GiB on record.',
    ),
  prefixCaching: z
    .boolean()
    .describe(
      'Whether the work on equal beginnings of prompts is kept (`--enable-prefix-caching`). Always said, because ' +
        'engines have changed their own default.',
    ),
  toolParser: flagValueSchema
    .optional()
    .describe(
      'Reads the tool calls of the model (`--tool-call-parser`, with `--enable-auto-tool-choice`). Without one the ' +
        'engine answers HTTP 400 to every request with tools.',
    )
    .meta({ examples: ['glm47'] }),
  reasoningParser: flagValueSchema
    .optional()
    .describe(
      'Tells the thinking from the answer (`--reasoning-parser`). Without one the thinking leaks into the answer.',
    )
    .meta({ examples: ['glm47'] }),
  speculative: speculativeSchema
    .optional()
    .describe(
      'Speculative decoding, keys as the engine names them (`--speculative-config`); without it none.',
    ),
  chatTemplate: absolutePathSchema
    .optional()
    .describe(
      'File of the chat template in the container: of the payload, below `/model`, or of `slot:shape.mounts` ' +
        "(`--chat-template`); without it the payload's own.",
    ),
  profiler: profilerSchema
    .optional()
    .describe(
      "Makes `/start_profile` and `/stop_profile` write traces of torch's profiler (`--profiler-config`, vLLM 0.15 and " +
        'later; before, the variables VLLM_TORCH_PROFILER_*, which 0.19 no longer reads); without it there are none.',
    ),
  telemetry: telemetrySchema
    .prefault({})
    .describe(
      "What the engine tells of itself. The fork's telemetry of experts (`expert_lru.py` in the log), its gather chunks " +
        'and lanes are variables of its launcher: their names are not on record, `slot:shape.environment` says them.',
    ),
  apiKey: z
    .strictObject({
      version: secretVersionSchema.describe('Another version is another engine: change it with the key.'),
    })
    .optional()
    .describe(
      'Requests below `/v1` need a key. It is the value of `slot:secrets.VLLM_API_KEY`, encrypted; on the host a ' +
        "secret of root's podman, which reaches the engine as a variable, never as text of unit or arguments. Without " +
        'it whoever reaches the port is served.',
    ),
  shutdownTimeout: durationSchema
    .refine(({ seconds }) => Number.isInteger(seconds), 'must be whole seconds')
    .optional()
    .describe(
      'How long an engine that is asked to end (SIGTERM) lets running requests go on (`--shutdown-timeout`, vLLM 0.18 ' +
        'and later; its own default is 0). The slot does not ask: it waits `deadlines.drain`, then kills. So this ' +
        'counts only where somebody stops the container by hand.',
    ),
  ipc: z
    .enum(['host', 'private'])
    .default('host')
    .describe(
      "Whether the GPUs' processes share memory through the host's /dev/shm, or one of the container's own.",
    ),
  extraArguments: extraArgumentsSchema(vllmCommandLine)
    .default([])
    .describe('Arguments that no key names, in order, flag and value as elements of their own.'),
});
export type VllmConfig = z.infer<typeof vllmSchema>;

/** The engine's own defaults for sampling and scheduling stay: what is not configured is not said. */
export function invokeVllm(engine: VllmConfig, place: EnginePlace): EngineInvocation {
  const { profiler, telemetry, apiKey } = engine;
  const servedNames = [engine.servedName, ...place.publicNames];
  const option = (flag: string, value: string | number | undefined): readonly string[] =>
    value === undefined ? [] : [flag, typeof value === 'number' ? plainNumber(value) : value];
  const flag = (name: string, on: boolean): readonly string[] => (on ? [name] : []);
  return {
    entrypoint: ['vllm', 'serve'],
    arguments: [
      place.payload,
      ...['--host', '0.0.0.0'],
      ...option('--port', place.port),
      ...['--served-model-name', ...servedNames],
      ...option('--tensor-parallel-size', engine.tensorParallel),
      ...option('--max-model-len', engine.maxModelLength),
      ...option('--max-num-seqs', engine.maxSequences),
      ...option('--max-num-batched-tokens', engine.maxBatchedTokens),
      ...option('--gpu-memory-utilization', engine.gpuMemoryUtilization),
      ...option('--kv-cache-dtype', engine.kvCacheDtype),
      ...option('--kv-cache-memory-bytes', engine.kvCacheMemory?.bytes),
      ...flag('--enable-expert-offload', engine.expertOffload),
      ...flag('--expert-precise-memory', engine.expertPreciseMemory),
      engine.prefixCaching ? '--enable-prefix-caching' : '--no-enable-prefix-caching',
      ...flag('--enable-auto-tool-choice', engine.toolParser !== undefined),
      ...option('--tool-call-parser', engine.toolParser),
      ...option('--reasoning-parser', engine.reasoningParser),
      ...option('--speculative-config', engine.speculative && plainJson(engine.speculative)),
      ...option('--chat-template', engine.chatTemplate),
      ...option('--profiler-config', profiler && profilerConfig(profiler, place)),
      ...option('--otlp-traces-endpoint', telemetry.tracesEndpoint),
      ...option('--collect-detailed-traces', telemetry.detailedTraces.join(',') || undefined),
      ...flag('--disable-log-stats', !telemetry.statistics),
      ...option('--shutdown-timeout', engine.shutdownTimeout?.seconds),
      ...engine.extraArguments,
    ],
    secrets: apiKey === undefined ? {} : { [apiKeyVariables.vllm]: apiKey },
    servedNames,
    healthPath: '/health',
    tools: engine.toolParser !== undefined,
    reasoningField: engine.reasoningParser === undefined ? undefined : 'reasoning',
    faults: faultsOf(engine, place),
  };
}

function profilerConfig({ state, withStack }: z.infer<typeof profilerSchema>, place: EnginePlace): string {
  return JSON.stringify({
    profiler: 'torch',
    torch_profiler_dir: place.state[state],
    torch_profiler_with_stack: withStack,
  });
}

function faultsOf(
  { profiler, telemetry, chatTemplate }: VllmConfig,
  place: EnginePlace,
): readonly EngineFault[] {
  const faults: EngineFault[] = [];
  if (profiler !== undefined && !Object.hasOwn(place.state, profiler.state)) {
    faults.push({
      key: 'profiler.state',
      value: profiler.state,
      limit: `must be a folder of slot:shape.state: ${Object.keys(place.state).join(', ') || 'it has none'}`,
      remedy: `add the folder: pulumi config set --path 'slot:shape.state.${profiler.state}' <folder>`,
    });
  }
  if (telemetry.detailedTraces.length > 0 && telemetry.tracesEndpoint === undefined) {
    faults.push({
      key: 'telemetry.detailedTraces',
      value: telemetry.detailedTraces.join(', '),
      limit: 'must not be there without telemetry.tracesEndpoint: nobody would get them',
      remedy: 'set the endpoint, or leave them out',
    });
  }
  if (chatTemplate !== undefined && !place.mounted.some((target) => isAtOrBelow(chatTemplate, target))) {
    faults.push({
      key: 'chatTemplate',
      value: chatTemplate,
      limit: `must lie where something is mounted: ${place.mounted.join(', ')}`,
      remedy: 'name a file of the payload below /model, or add the file to slot:shape.mounts',
    });
  }
  return faults;
}

function isAtOrBelow(path: string, target: string): boolean {
  return path === target || path.startsWith(`${target}/`);
}
