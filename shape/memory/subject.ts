import type { Measured } from '../measured.ts';
import type { MemoryRecord } from '../model.ts';
import type { Release } from '../release.ts';
import type { MemoryDemand } from './demand.ts';
import type { Figure, MemoryPlan, RecordedAmount, Source } from './figure.ts';

/** What the figures are computed from. */
export interface MemorySubject {
  readonly release: Release;
  /** Undefined: the engine says nothing of its memory in its arguments. */
  readonly demand: MemoryDemand | undefined;
  /** Undefined: nothing is on record of the model's memory. */
  readonly record: MemoryRecord | undefined;
  readonly measured: Measured | undefined;
  /** The figures so far. */
  readonly plan: MemoryPlan;
}

type Named = Pick<Figure, 'id' | 'label' | 'scope'> & { readonly unit?: Figure['unit'] };

/** A figure with its amount; `recorded` is what the record has for the same. */
export function known(
  named: Named,
  amount: number,
  source: Source,
  formula: string,
  recorded: readonly number[] = [],
): Figure {
  return {
    unit: 'bytes',
    ...named,
    amount,
    source,
    formula,
    ...besides(recorded.map((on): RecordedAmount => ({ amount: on, residual: on - amount }))),
  };
}

export function notKnown(named: Named, why: string, recorded: readonly number[] = []): Figure {
  return {
    unit: 'bytes',
    ...named,
    amount: 'not known',
    formula: why,
    ...besides(recorded.map((amount) => ({ amount }))),
  };
}

function besides(recorded: readonly RecordedAmount[]): Pick<Figure, 'recorded'> {
  return recorded.length === 0 ? {} : { recorded };
}

/** Of each GPU of the host; undefined: nobody says. */
export function gpuMemoryBytes({
  measured,
  release,
}: Pick<MemorySubject, 'measured' | 'release'>): number | undefined {
  return measured?.gpuMemoryBytes ?? release.review?.gpuMemoryBytes;
}

/** Whether the record holds for as many ranks as are asked for. */
export function isOnRecord(record: MemoryRecord | undefined, ranks: number): record is MemoryRecord {
  return record !== undefined && record.tensorParallel === ranks;
}

/** Why a figure of the record is not known of this shape. */
export function offRecord(record: MemoryRecord | undefined): string {
  return record === undefined
    ? 'nothing is on record of the model'
    : `on record for tensor parallel ${record.tensorParallel} alone`;
}
