import type { Measured } from '../measured.ts';
import type { Release } from '../release.ts';
import { demandOf } from './demand.ts';
import { expertFigures } from './expert-figures.ts';
import type { Figure, MemoryPlan } from './figure.ts';
import { gpuFigures } from './gpu-figures.ts';
import { hostFigures } from './host-figures.ts';
import { kvCacheFigures } from './kv-cache-figures.ts';

/**
 * What a release needs of memory: by its arguments, by what is on record of its model, and by what its host was
 * found with. Nothing is fitted: where the record does not close, its number stands beside the computed one.
 */
export function memoryPlanOf(release: Release, measured?: Measured): MemoryPlan {
  const demand = demandOf(release);
  const record = release.review?.model?.memory;
  let plan = planOf([]);
  for (const figuresOf of [expertFigures, kvCacheFigures, gpuFigures, hostFigures]) {
    plan = planOf([...plan.figures, ...figuresOf({ release, demand, record, measured, plan })]);
  }
  return plan;
}

function planOf(figures: readonly Figure[]): MemoryPlan {
  return {
    figures,
    amount(id, scope) {
      const found = figures.find((figure) => figure.id === id && (scope ?? figure.scope) === figure.scope);
      return found?.doubt === undefined && typeof found?.amount === 'number' ? found.amount : undefined;
    },
  };
}
