import type { PayloadFacts } from '../../shape/payload-facts.ts';
import { configurationFacts } from './configuration.ts';
import type { CountedExperts } from './experts.ts';
import type { Findings } from './findings.ts';
import { PayloadFault } from './payload-fault.ts';
import type { JsonObject } from './read-file.ts';

/** More types in one expert are none that anybody made. */
const mostDtypes = 16;

/** What a payload says of itself, by its configuration and its tensors; undefined: none of them is an expert's. */
export async function payloadFacts(
  config: JsonObject,
  experts: CountedExperts | undefined,
  findings: Findings,
): Promise<PayloadFacts> {
  const seen = experts && (await findings.attempt(async () => expertFacts(experts)));
  return { ...configurationFacts(config), expertBytes: null, expertDtypes: [], ...seen };
}

type ExpertFacts = Pick<PayloadFacts, 'expertLayers' | 'expertsPerLayer' | 'expertBytes' | 'expertDtypes'>;

function expertFacts(experts: CountedExperts): ExpertFacts {
  const { sample, fused } = experts;
  const bytes = sample.reduce((sum, { begin, end }) => sum + end - begin, 0);
  const perLayer = perLayerOf(experts);
  return {
    expertLayers: experts.layers,
    expertsPerLayer: perLayer,
    expertBytes: Number.isSafeInteger(bytes) ? Math.ceil(bytes / (fused ? Math.max(1, perLayer) : 1)) : null,
    expertDtypes: [...new Set(sample.map(({ dtype }) => dtype))].sort().slice(0, mostDtypes),
  };
}

function perLayerOf({ perLayer, fused, sample }: CountedExperts): number {
  if (fused) return sample.reduce((most, { shape }) => Math.max(most, shape[0] ?? 0), 0);
  const { least, most } = perLayer;
  if (least === most) return most;
  throw new PayloadFault('refuse', `its layers do not have as many experts each: ${least} to ${most}`);
}
