import type { Inspection } from './inspection.ts';
import type { PayloadFacts } from './payload-facts.ts';

/** What a host knows better than a file, as far as rules and the memory plan go. */
export interface Measured {
  /** `quant_method` of the payload's `config.json`; null: it has none, undefined: the file is not known. */
  readonly quantization?: string | null | undefined;
  /** Undefined: the payload is of another kind, could not be read, or the host's program is older. */
  readonly payload?: PayloadFacts | undefined;
  /** Of the GPU with the least; undefined: no GPU is named or none shows it. */
  readonly gpuMemoryBytes?: number | undefined;
  readonly memory?: MeasuredMemory | undefined;
}

/** The host's memory at the moment of the question, in bytes. */
export interface MeasuredMemory {
  readonly availableBytes: number;
  /** Whether an engine in the slot holds memory now that its stop gives back. */
  readonly engineRuns: boolean;
  /** What is available and what the running engine gives back; undefined: the host's program is older. */
  readonly afterStopBytes?: number | undefined;
  readonly totalBytes?: number | undefined;
  /** Memory that the kernel lets GPU drivers allocate in all; undefined: it has no such limit, or it was not asked. */
  readonly gpuPagesBytes?: number | undefined;
}

export function measuredOf({ occupant, transaction, memory, payload, ...inspection }: Inspection): Measured {
  const { gpus, memAvailableBytes } = inspection;
  const engineStands = occupant !== null && occupant.state !== 'stopped' && occupant.state !== 'failed';
  return {
    quantization: payload?.quantization === null ? null : payload?.quantization?.method,
    payload: payload ?? undefined,
    gpuMemoryBytes: gpus.length === 0 ? undefined : Math.min(...gpus.map((gpu) => gpu.vramTotalBytes)),
    memory: {
      availableBytes: memAvailableBytes,
      engineRuns: engineStands || transaction?.running === true,
      afterStopBytes: memory?.afterStopBytes,
      totalBytes: memory?.totalBytes,
      gpuPagesBytes: memory?.gpuPagesBytes ?? undefined,
    },
  };
}
