import { at } from '../../shape/operator-supplied.ts';
import type { PayloadFacts } from '../../shape/payload-facts.ts';

type ConfigurationFacts = Pick<
  PayloadFacts,
  'quantization' | 'dtype' | 'layers' | 'expertLayers' | 'expertsPerLayer'
>;

/** Where models keep what concerns their text part: by themselves, or inside the wrapper of a multimodal one. */
const textParts: readonly (readonly string[])[] = [
  [],
  ['text_config'],
  ['language_config'],
  ['llm_config'],
  ['thinker_config', 'text_config'],
];

/** By which models of different makers name the experts of one layer. */
const expertsKeys = [
  'n_routed_experts',
  'num_routed_experts',
  'num_experts',
  'num_local_experts',
  'moe_num_experts',
  'n_experts',
];

const layersKeys = ['num_hidden_layers', 'num_layers', 'n_layer', 'n_layers'];

/** What `config.json` says of experts, layers and quantization, however it is spelled. */
export function configurationFacts(config: Readonly<Record<string, unknown>>): ConfigurationFacts {
  const find = (keys: readonly string[]): unknown =>
    textParts
      .flatMap((part) => keys.map((key) => at(config, [...part, key])))
      .find((found) => found !== undefined && found !== null);
  const layers = countIn(find(layersKeys));
  const expertsPerLayer = countIn(find(expertsKeys));
  const dense = countIn(find(['first_k_dense_replace']));
  return {
    quantization: quantizationIn(find(['quantization_config', 'compression_config'])),
    dtype: textIn(find(['dtype', 'torch_dtype'])),
    layers,
    expertsPerLayer,
    expertLayers:
      layers !== null && expertsPerLayer !== null && dense !== null ? Math.max(0, layers - dense) : null,
  };
}

function quantizationIn(config: unknown): PayloadFacts['quantization'] {
  const method = textIn(at(config, ['quant_method']));
  if (method === null) return null;
  return {
    // As vLLM takes it.
    method: method.toLowerCase(),
    bits: countIn(at(config, ['bits'])),
    groupSize: countIn(at(config, ['group_size'])),
    packing: textIn(at(config, ['packing_format'])),
  };
}

/** No model has a million of anything that is counted here. */
function countIn(value: unknown): number | null {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 1_000_000
    ? (value as number)
    : null;
}

function textIn(value: unknown): string | null {
  return typeof value === 'string' && /^[\x21-\x7e]{1,100}$/.test(value) ? value : null;
}
