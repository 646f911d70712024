import { countText } from './amounts.ts';
import type { MemoryDemand } from './demand.ts';
import type { Figure } from './figure.ts';
import { lawAt } from './laws.ts';
import { isOnRecord, known, type MemorySubject, notKnown, offRecord } from './subject.ts';

const gpuNamed = { id: 'gpu-memory', label: 'GPU memory', scope: 'rank' } as const;
const claimNamed = { id: 'gpu-claim', label: 'claimed of it', scope: 'rank' } as const;
const unclaimedNamed = { id: 'gpu-unclaimed', label: 'left unclaimed', scope: 'rank' } as const;
const restNamed = { id: 'gpu-rest', label: 'rest of the claim', scope: 'rank' } as const;
const activationNamed = { id: 'activation-peak', label: 'activation peak', scope: 'rank' } as const;

/** Each rank's GPU: its memory, what the engine claims, and what is left of both. */
export function gpuFigures(subject: MemorySubject): readonly Figure[] {
  const { demand } = subject;
  const gpu = gpuMemory(subject);
  if (demand === undefined) return [gpu];
  return [
    activationPeak(demand, subject),
    gpu,
    ...claimFigures(demand, gpu),
    restFigure(demand, gpu, subject),
  ];
}

function activationPeak({ ranks, batchedTokens }: MemoryDemand, { record }: MemorySubject): Figure {
  if (!isOnRecord(record, ranks)) return notKnown(activationNamed, offRecord(record));
  if (batchedTokens === undefined) {
    return notKnown(activationNamed, "the shape leaves the tokens of one step to the engine's default");
  }
  const { activation } = record;
  const formula = `${countText(activation.bytesPerToken)} B × ${countText(batchedTokens)} batched tokens`;
  const recorded = activation.recorded.filter(({ tokens }) => tokens === batchedTokens);
  return known(
    activationNamed,
    lawAt(activation, batchedTokens),
    'derived',
    formula,
    recorded.map(({ bytes }) => bytes),
  );
}

function gpuMemory({ measured, release, record }: MemorySubject): Figure {
  if (measured?.gpuMemoryBytes !== undefined) {
    return known(gpuNamed, measured.gpuMemoryBytes, 'measured', 'mem_info_vram_total of the smallest GPU');
  }
  const configured = release.review?.gpuMemoryBytes;
  if (configured !== undefined) return known(gpuNamed, configured, 'configured', 'gpuMemory of the host');
  if (record?.gpuMemory === undefined) return notKnown(gpuNamed, 'the host was not asked, or names no GPUs');
  return known(gpuNamed, record.gpuMemory, 'recorded', 'of the GPUs on which the model was measured');
}

function claimFigures({ utilization }: MemoryDemand, gpu: Figure): readonly Figure[] {
  if (typeof gpu.amount !== 'number') {
    const why = 'the memory of the GPU is not known';
    return [notKnown(claimNamed, `× ${utilization}; ${why}`), notKnown(unclaimedNamed, why)];
  }
  const claim = Math.floor(gpu.amount * utilization);
  return [
    known(claimNamed, claim, 'derived', `GPU memory × ${utilization}`),
    known(unclaimedNamed, gpu.amount - claim, 'derived', 'GPU memory − claim'),
  ];
}

/** What is left of the claim for weights that are no experts, activations and graphs. */
function restFigure(demand: MemoryDemand, gpu: Figure, { plan }: MemorySubject): Figure {
  const held = demand.offload
    ? [plan.amount('arena'), plan.amount('kv-reserve')]
    : [plan.amount('resident-experts')];
  const formula = demand.offload ? 'claim − arena − KV reserve' : 'claim − experts on the GPU';
  if (typeof gpu.amount !== 'number' || held.some((part) => part === undefined)) {
    return notKnown(restNamed, `${formula}, of which one is not known`);
  }
  const parts = held.reduce<number>((sum, part) => sum + (part ?? 0), 0);
  return known(restNamed, Math.floor(gpu.amount * demand.utilization) - parts, 'derived', formula);
}
