export const figureIds = [
  'experts',
  'expert-slot',
  'arena',
  'slots',
  'resident-experts',
  'pinned',
  'kv-reserve',
  'mamba-pages',
  'drafter-cost',
  'kv-available',
  'kv-need',
  'activation-peak',
  'gpu-memory',
  'gpu-claim',
  'gpu-unclaimed',
  'gpu-rest',
  'memlock',
  'memory-gate',
  'memory-available',
  'memory-after-stop',
  'memory-total',
  'gpu-pages',
  'memory-headroom',
] as const;
export type FigureId = (typeof figureIds)[number];

/**
 * measured: read from this host or payload. recorded: on record of this model. configured: by shape or host.
 * derived: computed from others.
 */
export type Source = 'measured' | 'recorded' | 'configured' | 'derived';

/** One number of a memory plan, or that it is not known. */
export interface Figure {
  readonly id: FigureId;
  readonly label: string;
  /** Whether it counts for each rank, with its process and GPU, or for the host with all of them. */
  readonly scope: 'rank' | 'host';
  readonly unit: 'bytes' | 'count';
  readonly amount: number | 'not known' | 'no limit';
  /** Absent where the amount is not known. */
  readonly source?: Source;
  /** Where the amount comes from, or why it is not known. */
  readonly formula: string;
  /** Why it may not be the amount of this shape; nothing is computed from it, nor judged by it. */
  readonly doubt?: string;
  /** What the record has for the same, and how much that is above the amount. */
  readonly recorded?: readonly RecordedAmount[];
}

export interface RecordedAmount {
  readonly amount: number;
  /** undefined: the amount itself is not known. */
  readonly residual?: number;
  /** The recorded amounts of which it is the difference; absent: it is itself on record. */
  readonly differenceOf?: readonly [from: number, to: number];
}

/** The figures of a shape, in the order in which a reviewer reads them. */
export interface MemoryPlan {
  readonly figures: readonly Figure[];
  /** Undefined where there is no such figure, it is no number, or may not be that of this shape. */
  amount(id: FigureId, scope?: Figure['scope']): number | undefined;
}
