import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { invokeVllm, type VllmConfig } from '../../../../shape/engines/vllm.ts';
import type { Measured } from '../../../../shape/measured.ts';
import type { Figure, FigureId, MemoryPlan } from '../../../../shape/memory/figure.ts';
import { memoryPlanOf } from '../../../../shape/memory/plan.ts';
import { memoryTable } from '../../../../shape/memory/table.ts';
import type { MemoryRecord, Model } from '../../../../shape/model.ts';
import type { PayloadFacts } from '../../../../shape/payload-facts.ts';
import type { Release } from '../../../../shape/release.ts';
import { recordedMemory, recordedModel } from '../../../fixtures/models.ts';
import { suppliedShape } from '../../../fixtures/operator-files.ts';
import { planned } from '../rules/rule-cases.ts';

const glm = recordedModel('glm-5.3-flash');
const gib = 2 ** 30;
const mib = 2 ** 20;

interface Circumstances {
  readonly engine?: object;
  readonly model?: Model;
  readonly measured?: Measured;
}

const base = planned('glm-w4a16', { model: glm });
const { engine: baseEngine } = suppliedShape('glm-w4a16');

/** Of a release that differs in its arguments alone: a whole one takes too long to be planned a thousand times. */
function planOf({ engine = {}, model = glm, measured }: Circumstances = {}): MemoryPlan {
  const changed = { ...baseEngine, ...engine } as VllmConfig;
  const place = { port: base.port, payload: '/model', state: {}, mounted: [], publicNames: [] };
  const release: Release = {
    ...base,
    arguments: [...invokeVllm(changed, place).arguments],
    maxModelLength: changed.maxModelLength,
    gpuMemoryUtilization: changed.gpuMemoryUtilization,
    review: { exceptions: {}, model },
  };
  return memoryPlanOf(release, measured);
}

function figure(plan: MemoryPlan, id: FigureId, scope?: Figure['scope']): Figure {
  const found = plan.figures.find((one) => one.id === id && (scope ?? one.scope) === one.scope);
  if (found === undefined) throw new Error(`the plan has no ${id}`);
  return found;
}

function withMemory(changes: Partial<MemoryRecord>): Model {
  return { ...glm, memory: { ...recordedMemory(), ...changes } };
}

const dflash = { speculative: { method: 'dflash', model: '/draft' }, maxModelLength: 65_536 };
const mtp = { speculative: { method: 'mtp', num_speculative_tokens: 4 } };
const baseline = { gpuMemoryUtilization: 0.92, expertPreciseMemory: false };

describe('what is on record of GLM', () => {
  /** Amounts by the plan, each to the last digit that the record has. */
  it.each<[string, Circumstances, FigureId, number, number]>([
    ['12,096 experts', {}, 'experts', 12_096, 0],
    ['a slot of 6.234 MiB', {}, 'expert-slot', 6.234 * mib, 1],
    ['an arena of 14.51 GiB', {}, 'arena', 14.51 * gib, 1],
    ['2,383 slots in 14.51 GiB', {}, 'slots', 2383, 0],
    ['about 2,148 slots in 13.08 GiB', { engine: baseline }, 'slots', 2148, 1],
    ['73.64 GiB pinned by a rank', {}, 'pinned', 73.64 * gib, 0.005 * gib],
    ['a reserve of 1.66 GiB by the product', {}, 'kv-reserve', 1.66 * gib, 0.005 * gib],
    [
      'a reserve of 3.58 GiB with a drafter by the product',
      { engine: dflash },
      'kv-reserve',
      3.58 * gib,
      0.005 * gib,
    ],
    [
      '58,656 B a token with a drafter',
      { engine: { ...dflash, maxModelLength: 1 } },
      'kv-reserve',
      58_656,
      0,
    ],
    ['2.6 GiB of arena for MTP', { engine: mtp }, 'drafter-cost', 2.6 * gib, 1],
    ['a cap of 1.74 GiB', {}, 'kv-available', 1.74 * gib, 0.005 * gib],
    ['a need of 1.70 GiB', {}, 'kv-need', 1.7 * gib, 0.005 * gib],
    ['a need of 2.07 GiB with MTP', { engine: mtp }, 'kv-need', 2.07 * gib, 0.005 * gib],
    [
      'a peak of 2.00 GiB by the product',
      { engine: { maxBatchedTokens: 8192 } },
      'activation-peak',
      2 * gib,
      0,
    ],
    ['a gate of 230 GiB', {}, 'memory-gate', 230 * gib, 0],
  ])('%s', (_what, circumstances, id, expected, tolerance) => {
    const amount = planOf(circumstances).amount(id);
    expect(Math.abs((amount ?? Number.NaN) - expected)).toBeLessThanOrEqual(tolerance);
  });

  it('147.28 GiB pinned by both ranks', () => {
    expect((planOf().amount('pinned', 'host') ?? 0) / gib).toBeCloseTo(147.28, 2);
  });

  /** What the record says beside what its own arithmetic gives, with the difference. */
  it.each<[string, Circumstances, FigureId, readonly (readonly [number, number])[]]>([
    [
      'reserve',
      {},
      'kv-reserve',
      [
        [1.76, 0.1],
        [1.72, 0.06],
      ],
    ],
    ['reserve with a drafter', { engine: dflash }, 'kv-reserve', [[4.15, 0.57]]],
    ['peak', { engine: { maxBatchedTokens: 8192 } }, 'activation-peak', [[2.06, 0.06]]],
    ["drafter's cost", { engine: dflash }, 'drafter-cost', [[3.2, 0.45]]],
    ['pinned memory', {}, 'pinned', [[73.64, 0]]],
    ['cap', {}, 'kv-available', [[1.74, 0]]],
    ['need with MTP', { engine: mtp }, 'kv-need', [[2.07, 0]]],
  ])('the %s stands beside the product', (_what, circumstances, id, recorded) => {
    const found = figure(planOf(circumstances), id).recorded?.map(({ amount, residual = Number.NaN }) => [
      Math.round((amount / gib) * 100) / 100,
      Math.abs(Math.round((residual / gib) * 100) / 100),
    ]);
    expect(found).toEqual(recorded);
  });

  it('about 1,650 slots with a drafter stand beside the product', () => {
    expect(figure(planOf({ engine: dflash }), 'slots')).toMatchObject({
      amount: 1691,
      recorded: [{ amount: 1650, residual: -41 }],
    });
  });

  it("the drafter's cost is the difference of two recorded arenas, and not itself on record", () => {
    const [beside] = figure(planOf({ engine: dflash }), 'drafter-cost').recorded ?? [];
    expect(beside?.differenceOf?.map((bytes) => bytes / gib)).toEqual([13.5, expect.closeTo(10.3, 6)]);
    const table = memoryTable(planOf({ engine: dflash })).join('\n');
    expect(table).toContain('recorded 13.50 GiB − 10.30 GiB = 3.20 GiB');
    expect(table).not.toContain('recorded 3.20 GiB');
  });

  it('a difference is derived where nothing else is known', () => {
    const cost = { method: 'ngram', from: 13 * gib, to: 12 * gib };
    const plan = planOf({
      engine: { speculative: { method: 'ngram' } },
      model: withMemory({ speculationCost: [cost] }),
    });
    expect(figure(plan, 'drafter-cost')).toMatchObject({ amount: gib, source: 'derived' });
  });

  it('an arena of which a condition is not on record is shown and not counted', () => {
    const plan = planOf({ engine: dflash });
    expect(figure(plan, 'arena')).toMatchObject({
      amount: Math.round(10.3 * gib),
      source: 'recorded',
      doubt:
        'not measured of this shape: with which utilization, plan of the arena, batched tokens is not on record',
    });
    expect(figure(plan, 'slots').doubt).toBe(figure(plan, 'arena').doubt);
    for (const id of ['arena', 'slots', 'gpu-rest'] as const) expect(plan.amount(id)).toBeUndefined();
    expect(memoryTable(plan).join('\n')).toContain('with which utilization, plan of the arena');
  });

  it('the cap is not on record with a drafter', () => {
    expect(figure(planOf({ engine: dflash }), 'kv-available')).toMatchObject({
      amount: 'not known',
      formula: 'the cap is not on record with a drafter',
    });
    expect(
      figure(planOf({ engine: { ...dflash, kvCacheMemory: { bytes: gib } } }), 'kv-available').amount,
    ).toBe('not known');
  });

  it('the mamba pages are not made up from what is left over', () => {
    const pages = figure(planOf(), 'mamba-pages');
    expect(pages.amount).toBe('not known');
    expect(pages.formula).toMatch(/102\.24 MiB at 131,072, 60\.00 MiB at 131,072, 583\.60 MiB at 65,536/);
  });

  it('the reserve does not depend on the type of the cache', () => {
    expect(planOf({ engine: { kvCacheDtype: 'fp8' } }).amount('kv-reserve')).toBe(
      planOf().amount('kv-reserve'),
    );
  });
});

describe('a shape that was not measured', () => {
  it.each<[string, object]>([
    ['utilization', { gpuMemoryUtilization: 0.9 }],
    ['length', { maxModelLength: 100_000 }],
    ['tokens in a step', { maxBatchedTokens: 4096 }],
    ['precision', { expertPreciseMemory: false }],
    ['MTP', mtp],
    ['size of the KV cache', { kvCacheMemory: { bytes: gib } }],
    ['number of ranks', { tensorParallel: 1 }],
    ['number of tokens in a step, which it leaves to the engine', { maxBatchedTokens: undefined }],
    ['drafter', { ...dflash, maxModelLength: 65_535 }],
  ])('with another %s has an arena and slots that are not known', (_what, engine) => {
    const plan = planOf({ engine });
    expect(figure(plan, 'arena')).toMatchObject({ amount: 'not known' });
    expect(figure(plan, 'arena')).not.toHaveProperty('source');
    expect(figure(plan, 'slots').amount).toBe('not known');
    expect(figure(plan, 'gpu-rest').amount).toBe('not known');
  });

  it('on another number of ranks has no reserve, cap, need and peak; its slot grows', () => {
    const plan = planOf({ engine: { tensorParallel: 1 } });
    for (const id of ['kv-reserve', 'kv-available', 'kv-need', 'activation-peak'] as const) {
      expect(figure(plan, id)).toMatchObject({
        amount: 'not known',
        formula: expect.stringContaining('tensor parallel 2'),
      });
    }
    expect(figure(plan, 'expert-slot')).toMatchObject({ source: 'derived', amount: 2 * 6_536_823 });
    expect(plan.amount('pinned', 'host')).toBe(planOf().amount('pinned', 'host'));
  });

  it('with a drafter of another method has a need that is not known', () => {
    const plan = planOf({ engine: { speculative: { method: 'eagle3' } } });
    expect(figure(plan, 'kv-need').amount).toBe('not known');
    expect(figure(plan, 'drafter-cost').amount).toBe('not known');
  });

  it('leaves the peak open where the engine chooses the tokens of a step', () => {
    expect(figure(planOf({ engine: { maxBatchedTokens: undefined } }), 'activation-peak').amount).toBe(
      'not known',
    );
  });

  it('of a model without a record has nothing invented', () => {
    const plan = memoryPlanOf(planned('qwen-fp8-mtp4', { model: recordedModel('qwen3.8-flash-next') }));
    const computed = plan.figures.filter(({ source }) => source !== undefined && source !== 'configured');
    expect(computed).toEqual([]);
    expect(plan.figures.length).toBeGreaterThan(5);
  });

  it('without offloaded experts has them on the GPU and no arena', () => {
    const plan = planOf({ engine: { expertOffload: false } });
    expect((plan.amount('resident-experts') ?? 0) / gib).toBeCloseTo(73.64, 2);
    expect(plan.figures.map(({ id }) => id)).not.toContain('arena');
    expect(plan.figures.map(({ id }) => id)).not.toContain('pinned');
  });

  it('of an engine that is none of vLLM has figures of the host alone', () => {
    const ids = memoryPlanOf(planned('r9v-q8_0')).figures.map(({ id }) => id);
    expect(ids).toEqual(['gpu-memory', 'memlock', 'memory-gate']);
  });
});

describe('an arena on record', () => {
  it.each([
    ['a little below its size on paper', 31.9, true],
    ['of the size on record', 32, true],
    ['of half the size', 16, false],
    ['of the next size', 48, false],
  ])('on GPUs %s counts, or does not', (_what, size, counts) => {
    const plan = planOf({ measured: { gpuMemoryBytes: size * gib } });
    expect(plan.amount('arena') !== undefined).toBe(counts);
  });

  it('that names every condition goes before one that does not', () => {
    const [whole] = recordedMemory().arenas.filter(({ utilization }) => utilization === 0.98);
    if (whole === undefined) throw new Error('no such arena');
    const model = withMemory({ arenas: [{ maxModelLength: 131_072, arena: gib }, whole] });
    expect(planOf({ model }).amount('arena')).toBe(whole.arena);
  });

  it.each(['utilization', 'preciseMemory', 'maxModelLength', 'maxBatchedTokens'] as const)(
    'that does not name its %s is not counted',
    (condition) => {
      const arenas = recordedMemory().arenas.map((arena) => ({ ...arena, [condition]: undefined }));
      const plan = planOf({ model: withMemory({ arenas }) });
      expect(figure(plan, 'arena').doubt).toContain('is not on record');
      expect(plan.amount('gpu-rest')).toBeUndefined();
    },
  );
});

describe('the memory of the GPUs', () => {
  it('is what the host says where it was not asked', () => {
    const release = planned('glm-w4a16', { model: glm, host: { gpuMemory: { bytes: 24 * gib } } as never });
    expect(figure(memoryPlanOf(release), 'gpu-memory')).toMatchObject({
      amount: 24 * gib,
      source: 'configured',
    });
    const asked = memoryPlanOf(release, { gpuMemoryBytes: 16 * gib });
    expect(figure(asked, 'gpu-memory')).toMatchObject({ amount: 16 * gib, source: 'measured' });
  });
});

describe('what a host was found with', () => {
  const payload: PayloadFacts = {
    quantization: null,
    dtype: null,
    layers: 48,
    expertLayers: 48,
    expertsPerLayer: 512,
    expertBytes: 10 * mib,
    expertDtypes: ['F8_E4M3'],
  };

  it('gives experts, slot and pinned memory of a payload that is on no record', () => {
    const release = planned('qwen-fp8-mtp4', { model: recordedModel('qwen3.8-flash-next') });
    const plan = memoryPlanOf(release, { payload });
    expect(figure(plan, 'experts')).toMatchObject({ amount: 48 * 512, source: 'measured' });
    expect(figure(plan, 'expert-slot')).toMatchObject({ amount: 5 * mib, source: 'measured' });
    expect(plan.amount('pinned', 'host')).toBe(48 * 512 * 10 * mib);
  });

  it('stands beside the record', () => {
    const plan = planOf({ measured: { payload } });
    expect(figure(plan, 'experts').recorded).toEqual([{ amount: 12_096, residual: 12_096 - 48 * 512 }]);
    expect(figure(plan, 'expert-slot').recorded).toEqual([
      { amount: 6_536_823, residual: 6_536_823 - 5 * mib },
    ]);
  });

  it.each<[string, Partial<PayloadFacts>]>([
    ['no experts', { expertLayers: null, expertsPerLayer: null, expertBytes: null }],
    ['none at all', { expertLayers: 0, expertsPerLayer: 0, expertBytes: 0 }],
  ])('does not replace the record where it says %s', (_what, changes) => {
    const plan = planOf({ measured: { payload: { ...payload, ...changes } } });
    expect(figure(plan, 'experts').source).toBe('recorded');
    expect(figure(plan, 'expert-slot').source).toBe('recorded');
  });

  it('takes the place of the memory of the GPUs on record', () => {
    const plan = planOf({ measured: { gpuMemoryBytes: 16 * gib } });
    expect(figure(plan, 'gpu-memory')).toMatchObject({ amount: 16 * gib, source: 'measured' });
    expect(plan.amount('gpu-claim')).toBe(Math.floor(16 * gib * 0.98));
  });

  it.each<[string, Measured['memory'], number]>([
    ['the gate where no host was asked', undefined, 230],
    ['MemAvailable of an empty slot', { availableBytes: 250 * gib, engineRuns: false }, 250],
    [
      'the forecast while an engine runs',
      { availableBytes: 80 * gib, engineRuns: true, afterStopBytes: 240 * gib },
      240,
    ],
    ['the gate where the host does not forecast', { availableBytes: 80 * gib, engineRuns: true }, 230],
  ])('has headroom by %s', (_what, memory, available) => {
    const headroom = planOf({ measured: { memory } }).amount('memory-headroom');
    expect((headroom ?? 0) / gib).toBeCloseTo(available - 147.28, 2);
  });

  it('has no headroom that is known without a gate and a host', () => {
    const release = planned('glm-w4a16', { model: glm, host: { memoryGate: undefined } as never });
    expect(figure(memoryPlanOf(release), 'memory-headroom').amount).toBe('not known');
  });
});

describe('pinned blocks', () => {
  const rounded = (expertsPerBlock: number): number => {
    const model = withMemory({ pinned: { roundedToPowerOfTwo: true, expertsPerBlock } });
    return (planOf({ model }).amount('pinned', 'rank') ?? 0) / gib;
  };

  it('are as large as what they hold, as measured', () => {
    expect(recordedMemory().pinned).toMatchObject({ roundedToPowerOfTwo: false });
    expect((planOf().amount('pinned', 'rank') ?? 0) / gib).toBeCloseTo(73.64, 2);
  });

  it('would take 94.50 GiB if each expert were rounded up to 8 MiB', () => {
    expect(rounded(1)).toBe((12_096 * 8) / 1024);
  });

  it("would take 84 GiB if each layer's 288 experts were rounded up to 2 GiB", () => {
    expect(rounded(288)).toBe(42 * 2);
  });

  it('would take 128 GiB if all experts were one block', () => {
    expect(rounded(20_000)).toBe(128);
  });

  it('round their last, smaller one by itself', () => {
    expect(rounded(12_095)).toBe(128 + 8 / 1024);
  });
});

describe('whatever is asked for', () => {
  const positive = fc.integer({ min: 1, max: 2_000_000 });
  const engines = fc.record({
    maxModelLength: positive,
    maxBatchedTokens: fc.option(positive, { nil: undefined }),
    tensorParallel: fc.constantFrom(1, 2),
    gpuMemoryUtilization: fc.double({ min: 0.01, max: 1, noNaN: true }),
    expertOffload: fc.boolean(),
    expertPreciseMemory: fc.boolean(),
    kvCacheMemory: fc.option(fc.record({ bytes: positive }), { nil: undefined }),
    speculative: fc.option(
      fc.record({ method: fc.constantFrom('mtp', 'dflash', 'dspark', 'ngram', 'constructor', '') }),
      { nil: undefined },
    ),
  });
  const measured = fc.option(
    fc.record({
      gpuMemoryBytes: fc.option(fc.nat(), { nil: undefined }),
      memory: fc.option(
        fc.record({ availableBytes: fc.nat(), engineRuns: fc.boolean(), afterStopBytes: fc.nat() }),
        { nil: undefined },
      ),
    }),
    { nil: undefined },
  );
  /** Their sign is what they say. */
  const differences: readonly FigureId[] = ['gpu-rest', 'memory-headroom'];

  it('no amount is below zero or no number', () => {
    fc.assert(
      fc.property(engines, measured, (engine, found) => {
        for (const { id, amount } of planOf({ engine, ...(found && { measured: found }) }).figures) {
          if (typeof amount !== 'number') continue;
          expect(Number.isFinite(amount)).toBe(true);
          if (!differences.includes(id)) expect(amount).toBeGreaterThanOrEqual(0);
        }
      }),
    );
  });

  it('no figure is there twice for a rank or for the host, and each says where it is from', () => {
    fc.assert(
      fc.property(engines, measured, (engine, found) => {
        const { figures } = planOf({ engine, ...(found && { measured: found }) });
        expect(new Set(figures.map(({ id, scope }) => `${id} ${scope}`)).size).toBe(figures.length);
        for (const { amount, source, formula } of figures) {
          expect(source === undefined).toBe(amount === 'not known');
          expect(formula).not.toBe('');
        }
      }),
    );
  });

  it.each<[FigureId, 'maxModelLength' | 'maxBatchedTokens', object]>([
    ['kv-reserve', 'maxModelLength', {}],
    ['kv-reserve', 'maxModelLength', { speculative: { method: 'dflash' } }],
    ['kv-available', 'maxModelLength', {}],
    ['kv-need', 'maxModelLength', {}],
    ['kv-need', 'maxModelLength', mtp],
    ['drafter-cost', 'maxModelLength', { speculative: { method: 'dflash' } }],
    ['activation-peak', 'maxBatchedTokens', {}],
  ])('%s grows with %s', (id, key, engine) => {
    fc.assert(
      fc.property(positive, positive, (some, more) => {
        const at = (tokens: number): number =>
          planOf({ engine: { ...engine, [key]: tokens } }).amount(id) ?? -1;
        expect(at(some + more)).toBeGreaterThan(at(some));
      }),
      { numRuns: 30 },
    );
  });

  it('pinned memory grows by one slot with each expert', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1000 }),
        fc.integer({ min: 1, max: 1000 }),
        (layers, perLayer) => {
          const pinned = (more: number): number =>
            planOf({ model: { ...glm, experts: { layers, perLayer: perLayer + more } } }).amount(
              'pinned',
              'rank',
            ) ?? -1;
          expect(pinned(1) - pinned(0)).toBe(layers * 6_536_823);
        },
      ),
      { numRuns: 30 },
    );
  });

  it('reserves of two lengths are together that of both, ranks pin as much each, and the claim and the rest are the GPU', () => {
    fc.assert(
      fc.property(
        positive,
        positive,
        fc.double({ min: 0.01, max: 1, noNaN: true }),
        (some, more, utilization) => {
          const reserve = (tokens: number): number =>
            planOf({ engine: { maxModelLength: tokens } }).amount('kv-reserve') ?? -1;
          expect(reserve(some + more)).toBe(reserve(some) + reserve(more));
          const plan = planOf({ engine: { gpuMemoryUtilization: utilization } });
          expect(plan.amount('pinned', 'host')).toBe(2 * (plan.amount('pinned', 'rank') ?? -1));
          expect((plan.amount('gpu-claim') ?? -1) + (plan.amount('gpu-unclaimed') ?? -1)).toBe(
            plan.amount('gpu-memory'),
          );
        },
      ),
      { numRuns: 30 },
    );
  });

  it('rounded blocks are never smaller than what they hold, and never twice as large', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), (expertsPerBlock) => {
        const model = withMemory({ pinned: { roundedToPowerOfTwo: true, expertsPerBlock } });
        const [rounded = 0, exact = 0] = [planOf({ model }), planOf()].map((plan) =>
          plan.amount('pinned', 'rank'),
        );
        expect(rounded).toBeGreaterThanOrEqual(exact);
        expect(rounded).toBeLessThan(2 * exact);
      }),
      { numRuns: 50 },
    );
  });
});
