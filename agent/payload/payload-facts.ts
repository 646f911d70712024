import type { PayloadFacts } from '../../shape/payload-facts.ts';
import { configurationFacts } from './configuration.ts';
import { expertsNamed, type NamedExperts } from './experts.ts';
import type { Findings } from './findings.ts';
import type { PayloadFolder } from './folder.ts';
import { PayloadFault } from './payload-fault.ts';
import type { JsonObject } from './read-file.ts';
import { readHeader, safetensorsHeader, type Tensor, tensorIn } from './safetensors.ts';
import type { TensorSet } from './safetensors-set.ts';

/** Files that one expert may lie in; more are none that anybody made. */
const mostFiles = 8;
/** The same of the types in one expert. */
const mostDtypes = 16;

/** What a payload says of itself, by its configuration and the names of its tensors. */
export async function payloadFacts(
  folder: PayloadFolder,
  config: JsonObject,
  set: TensorSet | undefined,
  findings: Findings,
): Promise<PayloadFacts> {
  const configured = configurationFacts(config);
  const seen = set && (await findings.attempt(() => expertsOf(folder, set, configured.layers)));
  return { ...configured, expertBytes: null, expertDtypes: [], ...seen };
}

type SeenExperts = Pick<PayloadFacts, 'expertLayers' | 'expertsPerLayer' | 'expertBytes' | 'expertDtypes'>;

/** Undefined: no tensor is an expert's. */
async function expertsOf(
  folder: PayloadFolder,
  set: TensorSet,
  layers: number | null,
): Promise<SeenExperts | undefined> {
  const experts = expertsNamed(set.names, layers);
  if (experts === undefined) return undefined;
  const tensors = await tensorsOf(folder, set, experts.sample);
  if (tensors === undefined) return undefined;
  const bytes = tensors.reduce((sum, { begin, end }) => sum + end - begin, 0);
  const perLayer = perLayerOf(experts, tensors);
  return {
    expertLayers: experts.layers,
    expertsPerLayer: perLayer,
    expertBytes: Number.isSafeInteger(bytes)
      ? Math.ceil(bytes / (experts.fused ? Math.max(1, perLayer) : 1))
      : null,
    expertDtypes: [...new Set(tensors.map(({ dtype }) => dtype))].sort().slice(0, mostDtypes),
  };
}

function perLayerOf({ perLayer, fused }: NamedExperts, tensors: readonly Tensor[]): number {
  if (fused) return tensors.reduce((most, { shape }) => Math.max(most, shape[0] ?? 0), 0);
  const { least, most } = perLayer;
  if (least === most) return most;
  throw new PayloadFault('refuse', `its layers do not have as many experts each: ${least} to ${most}`);
}

/** Undefined: one is not where it should be, which is a finding already. */
async function tensorsOf(
  folder: PayloadFolder,
  set: TensorSet,
  names: readonly string[],
): Promise<readonly Tensor[] | undefined> {
  const files = [...new Set(names.flatMap((name) => set.fileOf(name) ?? []))];
  if (files.length > mostFiles) {
    throw new PayloadFault('note', `one expert lies in ${files.length} files: its size is not looked at`);
  }
  const headers = new Map<string, Tensor>();
  for (const file of files) {
    const header = safetensorsHeader(file, await readHeader(folder, file));
    for (const name of names) {
      const tensor = Object.hasOwn(header.tensors, name) ? tensorIn(header.tensors, name) : undefined;
      if (tensor !== undefined) headers.set(name, tensor);
    }
  }
  const found = names.flatMap((name) => headers.get(name) ?? []);
  return found.length === names.length ? found : undefined;
}
