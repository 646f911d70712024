import { describe, expect, it } from 'vitest';
import { type Limit, type Measure, reportOf, summaryOf, verdictOf } from '../../../lab/bench/measure.ts';

const atMostMore: Limit = { kind: 'difference', atMostSeconds: 0.3 };
const atMostTimes: Limit = { kind: 'ratio', atMost: 1.5 };

function measure(product: number[], floor: number[], limit: Limit): Measure {
  return {
    title: 'Outage',
    product: { what: 'pulumi up', seconds: product },
    floor: { what: 'by hand', seconds: floor },
    limit,
  };
}

const always = (seconds: number) => [seconds, seconds, seconds, seconds, seconds];

describe('a summary', () => {
  it('is not led astray by one round that the machine held up', () => {
    expect(summaryOf({ what: 'up', seconds: [2.4, 9.9, 2.5, 2.3, 2.6] })).toEqual({
      median: 2.5,
      least: 2.3,
      most: 9.9,
    });
  });

  it('orders by value, not by text', () => {
    expect(summaryOf({ what: 'up', seconds: [10, 9, 8, 7, 100] }).median).toBe(9);
  });

  it('takes the middle of the two inner ones of an even number', () => {
    expect(summaryOf({ what: 'up', seconds: [1, 2, 3, 4, 5, 6] }).median).toBe(3.5);
  });

  it('is refused for fewer rounds than say something', () => {
    expect(() => summaryOf({ what: 'up', seconds: [1, 2, 3, 4] })).toThrow(
      'up: 4 counted rounds, at least 5',
    );
  });

  it.each([0, -0.1, Number.NaN, Number.POSITIVE_INFINITY])('is refused for a time of %d s', (odd) => {
    expect(() => summaryOf({ what: 'up', seconds: [1, 1, 1, 1, odd] })).toThrow('no time');
  });
});

describe('a verdict', () => {
  it.each([
    [2.55, true],
    [2.65, false],
  ])('on %d s against a floor of 2.3 s, 0.3 s allowed', (seconds, isMet) => {
    expect(verdictOf(measure(always(seconds), always(2.3), atMostMore)).isMet).toBe(isMet);
  });

  it.each([
    [1.5, true],
    [1.52, false],
  ])('on %d s against a floor of 1 s, 1.5 times allowed', (seconds, isMet) => {
    expect(verdictOf(measure(always(seconds), always(1), atMostTimes)).isMet).toBe(isMet);
  });

  it('is not given on too few rounds of the floor', () => {
    expect(() => verdictOf(measure(always(1), [1], atMostTimes))).toThrow('by hand');
  });
});

describe('a report', () => {
  it('shows both sides, the difference, the limit and that it is missed', () => {
    expect(reportOf(measure([2.9, 2.8, 2.7, 3.1, 3], always(2.3), atMostMore))).toBe(
      [
        'Outage',
        '  pulumi up  median 2.900 s, 2.700 to 3.100 s in 5',
        '  by hand    median 2.300 s, 2.300 to 2.300 s in 5',
        '  +0.600 s, limit +0.3 s: NOT met',
      ].join('\n'),
    );
  });

  it('says when the product is faster than its floor', () => {
    expect(reportOf(measure(always(2), always(2.25), atMostMore))).toContain('−0.250 s, limit +0.3 s: met');
  });

  it('shows a ratio where the limit is one', () => {
    expect(reportOf(measure(always(3), always(2), atMostTimes))).toContain('× 1.50, limit × 1.5: met');
  });
});
