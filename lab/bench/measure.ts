/** Seconds that the product and its floor took, in the order in which they were taken, by turns. */
export interface Measure {
  readonly title: string;
  readonly product: Samples;
  readonly floor: Samples;
  readonly limit: Limit;
}

export interface Samples {
  readonly what: string;
  readonly seconds: readonly number[];
}

/** What the median of the product may be: so many seconds more than the floor's, or so many times as much. */
export type Limit =
  | { readonly kind: 'difference'; readonly atMostSeconds: number }
  | { readonly kind: 'ratio'; readonly atMost: number };

export interface Summary {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export interface Verdict {
  /** Difference of the medians in seconds, or their ratio, as the limit asks. */
  readonly value: number;
  readonly isMet: boolean;
}

/** Fewer say nothing on a machine that does other things as well. */
export const leastRounds = 5;

export function summaryOf({ what, seconds }: Samples): Summary {
  const odd = seconds.find((value) => !(value > 0 && Number.isFinite(value)));
  if (odd !== undefined) throw new Error(`${what}: ${odd} s is no time that something took`);
  if (seconds.length < leastRounds) {
    throw new Error(`${what}: ${seconds.length} counted rounds, at least ${leastRounds} are needed`);
  }
  const sorted = seconds.toSorted((one, other) => one - other);
  const at = (index: number) => sorted[index] ?? Number.NaN;
  const middle = Math.floor(sorted.length / 2);
  return {
    median: sorted.length % 2 === 1 ? at(middle) : (at(middle - 1) + at(middle)) / 2,
    least: at(0),
    most: at(sorted.length - 1),
  };
}

export function verdictOf({ product, floor, limit }: Measure): Verdict {
  const [ours, least] = [summaryOf(product).median, summaryOf(floor).median];
  return limit.kind === 'difference'
    ? { value: ours - least, isMet: ours - least <= limit.atMostSeconds }
    : { value: ours / least, isMet: ours / least <= limit.atMost };
}

/** The measure for people: both sides, what is compared, and whether the limit is met. */
export function reportOf(measure: Measure): string {
  const { title, product, floor, limit } = measure;
  const { value, isMet } = verdictOf(measure);
  const width = Math.max(product.what.length, floor.what.length);
  const row = (samples: Samples) => {
    const { median, least, most } = summaryOf(samples);
    return `  ${samples.what.padEnd(width)}  median ${median.toFixed(3)} s, ${least.toFixed(3)} to ${most.toFixed(3)} s in ${samples.seconds.length}`;
  };
  const compared =
    limit.kind === 'difference'
      ? `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)} s, limit +${limit.atMostSeconds} s`
      : `× ${value.toFixed(2)}, limit × ${limit.atMost}`;
  return [title, row(product), row(floor), `  ${compared}: ${isMet ? 'met' : 'NOT met'}`].join('\n');
}
