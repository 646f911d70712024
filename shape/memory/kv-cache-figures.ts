import type { MemoryRecord } from '../model.ts';
import { countText, sizeText } from './amounts.ts';
import type { MemoryDemand } from './demand.ts';
import type { Figure, RecordedAmount } from './figure.ts';
import { type Law, lawAt } from './laws.ts';
import { isOnRecord, known, type MemorySubject, notKnown, offRecord } from './subject.ts';

const reserveNamed = { id: 'kv-reserve', label: 'KV reserve', scope: 'rank' } as const;
const mambaNamed = { id: 'mamba-pages', label: 'mamba pages', scope: 'rank' } as const;
const drafterNamed = { id: 'drafter-cost', label: 'drafter cost', scope: 'rank' } as const;
const availableNamed = { id: 'kv-available', label: 'KV cache allowed', scope: 'rank' } as const;
const needNamed = { id: 'kv-need', label: 'KV cache needed', scope: 'rank' } as const;

/** What the plan of offloaded experts leaves for the KV cache, what the engine allows it and what it needs. */
export function kvCacheFigures({ release, demand, record }: MemorySubject): readonly Figure[] {
  if (demand === undefined || !demand.offload) return [];
  if (!isOnRecord(record, demand.ranks)) {
    return [reserveNamed, availableNamed, needNamed].map((named) => notKnown(named, offRecord(record)));
  }
  return [
    byLaw(reserveNamed, reserveLaw(demand, record), demand.maxModelLength),
    ...(release.review?.model?.hybrid ? [mambaPages(record)] : []),
    ...drafterCost(demand, record),
    kvAvailable(demand, record),
    kvNeed(demand, record),
  ];
}

function hasDrafter({ speculation }: MemoryDemand, { drafterReserve }: MemoryRecord): boolean {
  return speculation !== undefined && (drafterReserve?.methods.includes(speculation) ?? false);
}

function reserveLaw(demand: MemoryDemand, record: MemoryRecord): Law {
  return hasDrafter(demand, record) ? (record.drafterReserve ?? record.reserve) : record.reserve;
}

function byLaw(named: Parameters<typeof known>[0], law: Law, tokens: number): Figure {
  const recorded = law.recorded.filter((seen) => seen.tokens === tokens).map(({ bytes }) => bytes);
  return known(named, lawAt(law, tokens), 'derived', lawText(law, tokens), recorded);
}

function lawText({ bytesPerToken, fixed = 0 }: Law, tokens: number): string {
  const product = `${countText(bytesPerToken)} B × ${countText(tokens)}`;
  return fixed === 0 ? product : `${product} + ${sizeText(fixed)}`;
}

/** They are in the recorded reserves and in no number of their own: two residuals, and no constant gives both. */
function mambaPages({ reserve, drafterReserve }: MemoryRecord): Figure {
  const residuals = [reserve, ...(drafterReserve === undefined ? [] : [drafterReserve])].flatMap((law) =>
    law.recorded.map(
      ({ tokens, bytes }) => `${sizeText(bytes - lawAt(law, tokens))} at ${countText(tokens)}`,
    ),
  );
  const why = 'not on record by itself';
  return notKnown(
    mambaNamed,
    residuals.length === 0
      ? why
      : `${why}; recorded reserves are above their products by ${residuals.join(', ')}`,
  );
}

function drafterCost(demand: MemoryDemand, record: MemoryRecord): readonly Figure[] {
  const { speculation, maxModelLength } = demand;
  if (speculation === undefined) return [];
  const recorded = record.speculationCost.filter(
    (cost) => cost.method === speculation && (cost.maxModelLength ?? maxModelLength) === maxModelLength,
  );
  const { drafterReserve } = record;
  if (drafterReserve !== undefined && hasDrafter(demand, record)) {
    const more = {
      ...drafterReserve,
      bytesPerToken: drafterReserve.bytesPerToken - record.reserve.bytesPerToken,
    };
    const formula = `${lawText(more, maxModelLength)} more reserve; its weights are not counted`;
    const amount = lawAt(more, maxModelLength);
    const figure = known(drafterNamed, amount, 'derived', formula);
    const beside = recorded.map((cost) => ({ ...costOf(cost), residual: costOf(cost).amount - amount }));
    return [beside.length === 0 ? figure : { ...figure, recorded: beside }];
  }
  const [cost] = recorded;
  if (cost === undefined) return [notKnown(drafterNamed, `not on record for ${speculation}`)];
  const { amount, differenceOf } = costOf(cost);
  const terms = differenceOf?.map(sizeText).join(' − ');
  return [
    terms === undefined
      ? known(drafterNamed, amount, 'recorded', `of the arena, on record for ${speculation}`)
      : known(drafterNamed, amount, 'derived', `of the arena: ${terms}, on record for ${speculation}`),
  ];
}

type Cost = MemoryRecord['speculationCost'][number];

function costOf(cost: Cost): RecordedAmount {
  if ('arena' in cost) return { amount: cost.arena };
  return { amount: cost.from - cost.to, differenceOf: [cost.from, cost.to] };
}

function kvAvailable(demand: MemoryDemand, record: MemoryRecord): Figure {
  const { kvCacheBytes: asked, kvCapLifted, maxModelLength } = demand;
  if (asked !== undefined && kvCapLifted) {
    return known(availableNamed, asked, 'configured', '--kv-cache-memory-bytes, the cap lifted by a patch');
  }
  if (hasDrafter(demand, record)) return notKnown(availableNamed, 'the cap is not on record with a drafter');
  const cap = byLaw(availableNamed, record.cap, maxModelLength);
  if (asked === undefined || asked >= lawAt(record.cap, maxModelLength)) return cap;
  return known(availableNamed, asked, 'configured', '--kv-cache-memory-bytes, below the cap');
}

/** The law by which the engine refuses to boot; undefined: not on record for this speculation. */
export function needLaw({ speculation }: MemoryDemand, record: MemoryRecord): Law | undefined {
  if (speculation === undefined) return record.need;
  return speculation === 'mtp' ? record.mtpNeed : undefined;
}

function kvNeed(demand: MemoryDemand, record: MemoryRecord): Figure {
  const law = needLaw(demand, record);
  return law === undefined
    ? notKnown(needNamed, `not on record with ${demand.speculation}`)
    : byLaw(needNamed, law, demand.maxModelLength);
}
