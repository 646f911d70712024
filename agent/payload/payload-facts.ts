import type { Finding } from '../../shape/inspection.ts';
import type { PayloadFacts } from '../../shape/payload-facts.ts';
import { shorten } from '../../shape/problems.ts';
import type { Outside } from '../outside.ts';
import { configurationFacts } from './configuration.ts';
import { expertsNamed, type NamedExperts } from './experts.ts';
import { PayloadFault } from './payload-fault.ts';
import { jsonOf, type PayloadReader, payloadReader } from './read-file.ts';
import { safetensorsHeader, type Tensor } from './safetensors.ts';

const configBytes = 16 * 2 ** 20;
/** GLM's index of 113,074 tensors has about 10 MiB. */
const indexBytes = 32 * 2 ** 20;
/** Headers that are read to see one expert, or all tensors where there is no index. */
const quickHeaders = 8;
/** More types in one expert are none that anybody made. */
const mostDtypes = 16;

export interface ReadPayload {
  /** null: there is nothing to be known, or a finding says why not. */
  readonly facts: PayloadFacts | null;
  readonly findings: readonly Finding[];
}

/**
 * A quick look at what a payload of safetensors says of itself: bounded in bytes and time, whatever is in it. A
 * damaged one gives a finding.
 */
export async function payloadFacts(outside: Outside, folder: string): Promise<ReadPayload> {
  const reader = payloadReader(outside, folder);
  const findings: Finding[] = [];
  const attempt = async <T>(look: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await look();
    } catch (error) {
      // Whatever a payload does to its reader, the host is inspected.
      const severity = error instanceof PayloadFault ? error.severity : 'note';
      findings.push({ severity, subject: 'payload', message: (error as Error).message });
      return undefined;
    }
  };
  const config = await attempt(() => configOf(reader));
  if (config === undefined) return { facts: null, findings };
  const configured = configurationFacts(config);
  const seen = await attempt(() => expertsOf(reader, configured.layers));
  return { facts: { ...configured, expertBytes: null, expertDtypes: [], ...seen }, findings };
}

async function configOf(reader: PayloadReader): Promise<Readonly<Record<string, unknown>>> {
  const config = await jsonOf(reader, 'config.json', configBytes);
  if (config === undefined) throw new PayloadFault('refuse', `${reader.folder} has no config.json`);
  return config;
}

type SeenExperts = Pick<PayloadFacts, 'expertLayers' | 'expertsPerLayer' | 'expertBytes' | 'expertDtypes'>;

/** Undefined: no tensor is an expert's, or there are no safetensors files. */
async function expertsOf(reader: PayloadReader, layers: number | null): Promise<SeenExperts | undefined> {
  const places = await tensorFiles(reader);
  const experts = places && expertsNamed(Object.keys(places), layers);
  if (places === undefined || experts === undefined) return undefined;
  const tensors = await tensorsOf(reader, places, experts.sample);
  const bytes = tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
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

/** File of each tensor by its name; what an index says is not trusted to be one. */
type Places = Readonly<Record<string, unknown>>;

/** By the index, else by the headers. Undefined: there are no safetensors files. */
async function tensorFiles(reader: PayloadReader): Promise<Places | undefined> {
  const names = await reader.names();
  const index = names.find((name) => name.endsWith('.safetensors.index.json'));
  if (index !== undefined) return weightMapOf(reader, index);
  const files = names.filter((name) => name.endsWith('.safetensors'));
  if (files.length === 0) return undefined;
  if (files.length > quickHeaders) {
    throw new PayloadFault('note', `${files.length} safetensors files without an index are not looked at`);
  }
  const found: (readonly [name: string, file: string])[] = [];
  for (const file of files) {
    const { tensors } = await safetensorsHeader(reader, file);
    for (const name of tensors.keys()) found.push([name, file]);
  }
  return Object.fromEntries(found);
}

async function weightMapOf(reader: PayloadReader, index: string): Promise<Places> {
  const weightMap = (await jsonOf(reader, index, indexBytes))?.weight_map;
  if (weightMap === null || typeof weightMap !== 'object') {
    throw new PayloadFault('refuse', `${index} has no weight_map`);
  }
  return weightMap as Places;
}

async function tensorsOf(
  reader: PayloadReader,
  places: Places,
  names: readonly string[],
): Promise<readonly Tensor[]> {
  const files = [...new Set(names.map((name) => places[name]))];
  if (files.length > quickHeaders) {
    throw new PayloadFault('note', `one expert lies in ${files.length} files, which are not looked at`);
  }
  const found = new Map<string, Tensor>();
  for (const file of files) {
    // A name from the index: nothing outside the payload is opened by it.
    if (typeof file !== 'string' || !/^[^/\0]+\.safetensors$/.test(file)) {
      throw new PayloadFault(
        'refuse',
        `its index names ${shorten(JSON.stringify(file) ?? 'nothing')}, which is no file of the payload`,
      );
    }
    const { tensors, neededBytes, fileBytes } = await safetensorsHeader(reader, file);
    if (neededBytes > fileBytes) {
      throw new PayloadFault('refuse', `${file} is cut: ${neededBytes - fileBytes} bytes are missing`);
    }
    for (const [name, tensor] of tensors) found.set(name, tensor);
  }
  return names.map((name) => {
    const tensor = found.get(name);
    if (tensor !== undefined) return tensor;
    throw new PayloadFault('refuse', `${places[name]} does not hold ${name}, which the index finds there`);
  });
}
