import * as z from 'zod';

const count = z.int().nonnegative().nullable();

/**
 * What a payload says of itself: its `config.json` and the headers of its safetensors files. null: it does not say,
 * or not in a way that is known here.
 */
export const payloadFactsSchema = z.strictObject({
  /** Of `quantization_config`. */
  quantization: z
    .strictObject({
      method: z.string(),
      bits: z.number().nullable(),
      groupSize: z.number().nullable(),
      /** E.g. `auto_round:auto_gptq`. */
      packing: z.string().nullable(),
    })
    .nullable(),
  /** Of what is not quantized, e.g. `bfloat16`. */
  dtype: z.string().nullable(),
  /** All layers, with experts or without. */
  layers: count,
  /** Layers that have experts, without those of multi-token prediction: by the tensors' names, else by the configuration. */
  expertLayers: count,
  /** Experts of one layer: by the tensors' names, else by the configuration. */
  expertsPerLayer: count,
  /** All tensors of one expert, for all ranks together. */
  expertBytes: count,
  /** Types of those tensors, e.g. `I32`, `F16`. */
  expertDtypes: z.array(z.string()),
});
export type PayloadFacts = z.infer<typeof payloadFactsSchema>;
