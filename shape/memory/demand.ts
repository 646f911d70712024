import { renderedArguments } from '../engines/rendered-arguments.ts';
import { perRelease } from '../per-release.ts';
import type { Release } from '../release.ts';

/** What a vLLM shape asks of memory. */
export interface MemoryDemand {
  readonly ranks: number;
  /** Tokens of prompt and answer together. */
  readonly maxModelLength: number;
  /** Tokens of one step; undefined: the engine's own default. */
  readonly batchedTokens: number | undefined;
  /** Part of each GPU's memory, 0 to 1. */
  readonly utilization: number;
  /** Experts live in pinned host memory. */
  readonly offload: boolean;
  readonly preciseMemory: boolean;
  /** Asked for in bytes; undefined: the engine's plan gives the size. */
  readonly kvCacheBytes: number | undefined;
  /** A patch lifts the cap that the engine puts on its KV cache. */
  readonly kvCapLifted: boolean;
  /** Method of speculative decoding, `mtp` whatever the model's own name for it; undefined: none. */
  readonly speculation: string | undefined;
}

/** Undefined where the engine is none of vLLM's. */
export const demandOf = perRelease((release): MemoryDemand | undefined => {
  if (release.engineKind !== 'vllm') return undefined;
  const flags = renderedArguments(release.arguments);
  return {
    ranks: positive(flags.number('--tensor-parallel-size')) ?? 1,
    maxModelLength: release.maxModelLength,
    batchedTokens: positive(flags.number('--max-num-batched-tokens')),
    utilization: release.gpuMemoryUtilization,
    offload: flags.isOn('--enable-expert-offload') ?? false,
    preciseMemory: flags.isOn('--expert-precise-memory') ?? false,
    kvCacheBytes: positive(flags.number('--kv-cache-memory-bytes')),
    kvCapLifted: release.patches.some(liftsKvCap),
    speculation: speculationOf(flags.value('--speculative-config'), flags.object('--speculative-config')),
  };
});

function liftsKvCap({ target, diffs }: Release['patches'][number]): boolean {
  return target.endsWith('/gpu_worker.py') && diffs.some(({ name }) => name.includes('kv-cap'));
}

function speculationOf(
  written: string | undefined,
  config: Readonly<Record<string, unknown>> | undefined,
): string | undefined {
  if (config === undefined) return written === undefined ? undefined : 'not readable';
  const { method } = config;
  if (typeof method !== 'string') return 'not named';
  return /(?:^|_)mtp$/.test(method) ? 'mtp' : method;
}

function positive(value: number | undefined): number | undefined {
  return value !== undefined && value > 0 && Number.isFinite(value) ? value : undefined;
}
