import * as z from 'zod';
import { byteSizeSchema } from '../quantities.ts';
import { nonEmptyLineSchema } from '../text.ts';
import { extraArgumentsSchema } from './extra-arguments.ts';
import { imageSchema } from './image.ts';
import type { EngineInvocation, EnginePlace } from './invocation.ts';

/** Flags that a field of its own renders: as extra arguments they would be there twice. */
const ownedFlags = [
  '--model',
  '--host',
  '--port',
  '--served-model-name',
  '--tensor-parallel-size',
  '--max-model-len',
  '--max-num-seqs',
  '--max-num-batched-tokens',
  '--gpu-memory-utilization',
  '--kv-cache-dtype',
  '--kv-cache-memory-bytes',
  '--enable-expert-offload',
  '--no-enable-expert-offload',
  '--expert-precise-memory',
  '--no-expert-precise-memory',
  '--enable-prefix-caching',
  '--no-enable-prefix-caching',
  '--enable-auto-tool-choice',
  '--no-enable-auto-tool-choice',
  '--tool-call-parser',
  '--reasoning-parser',
  '--speculative-config',
];

export const vllmSchema = z.strictObject({
  kind: z.literal('vllm'),
  /** Its entrypoint must be `vllm serve`, as that of the official images is. */
  image: imageSchema,
  /** The name by which clients call the model. */
  servedName: nonEmptyLineSchema,
  /** GPUs that share the model; default 1. */
  tensorParallel: z.int().positive().default(1),
  /** Tokens of prompt and answer together. */
  maxModelLength: z.int().positive(),
  /** Requests at one time; default: the engine's. */
  maxSequences: z.int().positive().optional(),
  /** Tokens of one step; default: the engine's. */
  maxBatchedTokens: z.int().positive().optional(),
  /** Part of each GPU's memory that the engine claims, 0 to 1. */
  gpuMemoryUtilization: z.number().gt(0).lte(1),
  /** Default `auto`, the type of the weights. */
  kvCacheDtype: nonEmptyLineSchema.default('auto'),
  /** Size of the KV cache on each GPU; default: what the engine's own plan gives. */
  kvCacheMemory: byteSizeSchema.optional(),
  /** Experts live in pinned host memory and are swapped in; default false. */
  expertOffload: z.boolean().default(false),
  /** Sizes the arena of swapped experts to the byte; default false. */
  expertPreciseMemory: z.boolean().default(false),
  /** Always said, because engines have changed their own default. */
  prefixCaching: z.boolean(),
  /** Without one the engine answers HTTP 400 to every request with tools; default none. */
  toolParser: nonEmptyLineSchema.optional(),
  /** Without one the thinking leaks into the answer; default none. */
  reasoningParser: nonEmptyLineSchema.optional(),
  /** The engine's speculative decoding, as it names the keys; default none. */
  speculative: z.record(z.string(), z.json()).optional(),
  /** Containers share memory between the GPUs' processes through the host's /dev/shm; default `host`. */
  ipc: z.enum(['host', 'private']).default('host'),
  /** Arguments that no field names, in order, flag and value as elements of their own; default none. */
  extraArguments: extraArgumentsSchema(ownedFlags, ['vllm', 'serve']),
});
export type VllmConfig = z.infer<typeof vllmSchema>;

/** The engine's own defaults for sampling and scheduling stay: what is not configured is not said. */
export function invokeVllm(engine: VllmConfig, place: EnginePlace): EngineInvocation {
  const servedNames = [engine.servedName, ...place.publicNames];
  const option = (flag: string, value: string | number | undefined): readonly string[] =>
    value === undefined ? [] : [flag, String(value)];
  const flag = (name: string, on: boolean): readonly string[] => (on ? [name] : []);
  return {
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
      ...option('--speculative-config', engine.speculative && JSON.stringify(engine.speculative)),
      ...engine.extraArguments,
    ],
    servedNames,
    healthPath: '/health',
    tools: engine.toolParser !== undefined,
    reasoningField: engine.reasoningParser === undefined ? undefined : 'reasoning',
    faults: [],
  };
}
