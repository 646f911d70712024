import type { MemoryRecord } from '../model.ts';
import { countText, sizeText } from './amounts.ts';
import type { MemoryDemand } from './demand.ts';
import type { Figure } from './figure.ts';
import { pinnedBytes } from './laws.ts';
import { gpuMemoryBytes, isOnRecord, known, type MemorySubject, notKnown } from './subject.ts';

const expertsNamed = { id: 'experts', label: 'experts', scope: 'rank', unit: 'count' } as const;
const slotNamed = { id: 'expert-slot', label: 'expert slot', scope: 'rank' } as const;
const arenaNamed = { id: 'arena', label: 'arena', scope: 'rank' } as const;
const slotsNamed = { id: 'slots', label: 'slots in the arena', scope: 'rank', unit: 'count' } as const;
const residentNamed = { id: 'resident-experts', label: 'experts on the GPU', scope: 'rank' } as const;
const pinnedNamed = { id: 'pinned', label: 'pinned experts', scope: 'rank' } as const;
const pinnedOnHostNamed = { id: 'pinned', label: 'pinned experts', scope: 'host' } as const;

/** Experts, their slot, and where they lie: in an arena of the GPU and pinned on the host, or all on the GPU. */
export function expertFigures(subject: MemorySubject): readonly Figure[] {
  const { demand, record, measured } = subject;
  const hasExperts =
    subject.release.review?.model?.experts !== undefined || (measured?.payload?.expertsPerLayer ?? 0) > 0;
  if (demand === undefined || !(hasExperts || demand.offload)) return [];
  const experts = expertCount(subject);
  const slot = expertSlot(demand, subject);
  if (!demand.offload) return [experts, slot, residentFigure(experts, slot)];
  const seen = arenaOf(demand, subject);
  const arena = arenaFigure(seen);
  return [
    experts,
    slot,
    arena,
    slotsFigure(arena, slot, seen),
    ...pinnedFigures(experts, slot, demand, record),
  ];
}

function expertCount({ release, measured }: MemorySubject): Figure {
  const recorded = release.review?.model?.experts;
  const onRecord = recorded === undefined ? [] : [recorded.layers * recorded.perLayer];
  const { expertLayers, expertsPerLayer } = measured?.payload ?? {};
  if (expertLayers && expertsPerLayer) {
    const formula = `${expertLayers} layers × ${expertsPerLayer}, of the payload`;
    return known(expertsNamed, expertLayers * expertsPerLayer, 'measured', formula, onRecord);
  }
  if (recorded === undefined) return notKnown(expertsNamed, 'neither on record nor read from the payload');
  const formula = `${recorded.layers} layers × ${recorded.perLayer}`;
  return known(expertsNamed, recorded.layers * recorded.perLayer, 'recorded', formula);
}

function expertSlot({ ranks }: MemoryDemand, { record, measured }: MemorySubject): Figure {
  const onRecord =
    record === undefined ? [] : [Math.ceil((record.expertSlot * record.tensorParallel) / ranks)];
  const expertBytes = measured?.payload?.expertBytes;
  if (expertBytes) {
    const formula = `${countText(expertBytes)} B of one expert's tensors ÷ ${ranks} ranks`;
    return known(slotNamed, Math.ceil(expertBytes / ranks), 'measured', formula, onRecord);
  }
  const [recorded] = onRecord;
  if (record === undefined || recorded === undefined) {
    return notKnown(slotNamed, 'neither on record nor read from the payload');
  }
  if (record.tensorParallel === ranks)
    return known(slotNamed, recorded, 'recorded', `${countText(recorded)} B, on record`);
  const formula = `${sizeText(record.expertSlot)} × ${record.tensorParallel} ÷ ${ranks} ranks`;
  return known(slotNamed, recorded, 'derived', formula);
}

function residentFigure(experts: Figure, slot: Figure): Figure {
  if (typeof experts.amount !== 'number' || typeof slot.amount !== 'number') {
    return notKnown(residentNamed, 'experts × slot, of which one is not known');
  }
  return known(
    residentNamed,
    experts.amount * slot.amount,
    'derived',
    productText(experts.amount, slot.amount),
  );
}

type SeenArena = MemoryRecord['arenas'][number];

/** Of a shape that was not measured it is not known: it is what the engine finds left after its profile run. */
function arenaFigure(seen: SeenArena | undefined): Figure {
  if (seen === undefined) return notKnown(arenaNamed, 'not measured for a shape like this one');
  const doubt = unrecordedText(seen);
  return {
    ...known(arenaNamed, seen.arena, 'recorded', `on record ${conditionsText(seen)}`),
    ...(doubt !== undefined && { doubt }),
  };
}

/** With what it was seen. */
function conditionsText(seen: SeenArena): string {
  const { utilization, preciseMemory, maxModelLength, maxBatchedTokens, speculation } = seen;
  return [
    ...(utilization === undefined ? [] : [`at utilization ${utilization}`]),
    ...(preciseMemory === undefined ? [] : [`${preciseMemory ? 'with' : 'without'} precise memory`]),
    ...(maxModelLength === undefined ? [] : [`at ${countText(maxModelLength)} tokens`]),
    ...(maxBatchedTokens === undefined ? [] : [`${countText(maxBatchedTokens)} of them in a step`]),
    ...(speculation === undefined ? [] : [`with ${speculation}`]),
  ].join(', ');
}

/** The conditions that the record does not name: with another one of these it is the arena of another shape. */
function unrecordedText(seen: SeenArena): string | undefined {
  const missing = [
    ...(seen.utilization === undefined ? ['utilization'] : []),
    ...(seen.preciseMemory === undefined ? ['plan of the arena'] : []),
    ...(seen.maxModelLength === undefined ? ['length'] : []),
    ...(seen.maxBatchedTokens === undefined ? ['batched tokens'] : []),
  ];
  return missing.length === 0
    ? undefined
    : `not measured of this shape: with which ${missing.join(', ')} is not on record`;
}

/**
 * What the driver says of a GPU is a little below its size on paper: 31.9 GiB of 32 GiB. The next size that is sold is
 * further away than this part of it.
 */
const sameSize = 0.95;

/** The arena that was seen under all of the shape's conditions, or failing that under all that the record names. */
function arenaOf(demand: MemoryDemand, subject: MemorySubject): SeenArena | undefined {
  const { record } = subject;
  if (!isOnRecord(record, demand.ranks) || demand.kvCacheBytes !== undefined) return undefined;
  const { gpuMemory } = record;
  const here = gpuMemoryBytes(subject);
  const [less, more] = [gpuMemory, here].sort((a = 0, b = 0) => a - b);
  if (gpuMemory !== undefined && here !== undefined && (less ?? 0) < (more ?? 0) * sameSize) return undefined;
  const seen = record.arenas.filter(
    ({ utilization, preciseMemory, maxModelLength, maxBatchedTokens, speculation }) =>
      (utilization ?? demand.utilization) === demand.utilization &&
      (maxBatchedTokens ?? demand.batchedTokens) === demand.batchedTokens &&
      (preciseMemory ?? demand.preciseMemory) === demand.preciseMemory &&
      (maxModelLength ?? demand.maxModelLength) === demand.maxModelLength &&
      speculation === demand.speculation,
  );
  return seen.find((arena) => unrecordedText(arena) === undefined) ?? seen[0];
}

function slotsFigure(arena: Figure, slot: Figure, seen: SeenArena | undefined): Figure {
  if (typeof arena.amount !== 'number' || typeof slot.amount !== 'number' || slot.amount === 0) {
    return notKnown(slotsNamed, 'arena ÷ slot, of which one is not known');
  }
  const formula = `${sizeText(arena.amount)} ÷ ${sizeText(slot.amount)}, whole slots`;
  const onRecord = seen?.slots === undefined ? [] : [seen.slots];
  return {
    ...known(slotsNamed, Math.floor(arena.amount / slot.amount), 'derived', formula, onRecord),
    ...(arena.doubt !== undefined && { doubt: arena.doubt }),
  };
}

function pinnedFigures(
  experts: Figure,
  slot: Figure,
  { ranks }: MemoryDemand,
  record: MemoryRecord | undefined,
): readonly Figure[] {
  if (typeof experts.amount !== 'number' || typeof slot.amount !== 'number') {
    const why = 'experts × slot, of which one is not known';
    return [notKnown(pinnedNamed, why), notKnown(pinnedOnHostNamed, why)];
  }
  const blocks = record?.pinned ?? { roundedToPowerOfTwo: false, expertsPerBlock: 1 };
  const bytes = pinnedBytes(experts.amount, slot.amount, blocks);
  const formula = blocks.roundedToPowerOfTwo
    ? `${productText(experts.amount, slot.amount)}, each block of ${blocks.expertsPerBlock} rounded up to a power of two`
    : productText(experts.amount, slot.amount);
  const recorded = isOnRecord(record, ranks) ? record.pinned.recorded : undefined;
  const onRecord = recorded === undefined ? [] : [recorded];
  return [
    known(pinnedNamed, bytes, 'derived', formula, onRecord),
    known(
      pinnedOnHostNamed,
      bytes * ranks,
      'derived',
      `${formula}, × ${ranks} ranks`,
      onRecord.map((on) => on * ranks),
    ),
  ];
}

function productText(experts: number, slot: number): string {
  return `${countText(experts)} × ${sizeText(slot)}`;
}
