import { distance } from 'fastest-levenshtein';

/**
 * Keys of `--speculative-config`: fields of vLLM's `SpeculativeConfig` (vllm/config/speculative.py) that a person sets,
 * with those of earlier releases. A fork may have more.
 */
const knownKeys = [
  'method',
  'model',
  'num_speculative_tokens',
  'num_speculative_tokens_per_batch_size',
  'enforce_eager',
  'draft_tensor_parallel_size',
  'tensor_parallel_size',
  'quantization',
  'moe_backend',
  'attention_backend',
  'kv_cache_dtype',
  'max_model_len',
  'revision',
  'code_revision',
  'index_share_for_mtp_iteration',
  'disable_padded_drafter_batch',
  'disable_eagle_block_drop',
  'disable_by_batch_size',
  'disable_logprobs',
  'use_local_argmax_reduction',
  'use_heterogeneous_vocab',
  'prompt_lookup_max',
  'prompt_lookup_min',
  'parallel_drafting',
  'speculative_token_tree',
  'suffix_decoding_max_tree_depth',
  'suffix_decoding_max_cached_requests',
  'suffix_decoding_max_spec_factor',
  'suffix_decoding_min_token_prob',
  'draft_load_config',
  'draft_sample_method',
  'dspark_draft_topk',
  'rejection_sample_method',
  'synthetic_acceptance_rate',
  'synthetic_acceptance_rates',
  'synthetic_acceptance_length',
  'enable_adaptive_verification',
] as const;

export interface SpeculativeFault {
  /** Undefined: the whole. */
  readonly key: string | undefined;
  readonly message: string;
  readonly remedy: string;
}

/** What is wrong with the keys of a speculative configuration; one that is like none of vLLM's may be a fork's. */
export function speculativeFaults(map: Readonly<Record<string, unknown>>): readonly SpeculativeFault[] {
  const misspelt = Object.keys(map).flatMap((key) => {
    const meant = meantBy(key);
    const remedy = `did you mean ${meant}?`;
    return meant === undefined ? [] : [{ key, message: 'is not a known key', remedy }];
  });
  const faults: SpeculativeFault[] = [...misspelt];
  const { num_speculative_tokens: tokens, method, model } = map;
  if (tokens !== undefined && !(Number.isInteger(tokens) && Number(tokens) > 0)) {
    const message = 'must be a whole number above 0';
    faults.push({ key: 'num_speculative_tokens', message, remedy: 'write a plain number, e.g. 4' });
  }
  for (const [key, name] of Object.entries({ method, model })) {
    if (name === undefined || (typeof name === 'string' && name !== '')) continue;
    faults.push({ key, message: 'must be text, not empty', remedy: 'write its name, or take it out' });
  }
  if (method === undefined && model === undefined && misspelt.length === 0) {
    const message = 'must name its method or the model that drafts: the engine cannot tell what to do';
    faults.push({ key: undefined, message, remedy: 'write e.g. {method: mtp, num_speculative_tokens: 4}' });
  }
  return faults;
}

/** The key that a misspelt, shortened or differently written one is meant for. */
function meantBy(key: string): string | undefined {
  const written = spelled(key);
  if (knownKeys.some((known) => known === key)) return undefined;
  return knownKeys
    .map((known) => ({ known, steps: shortens(written, known) ? 0 : distance(written, known) }))
    .filter(({ known, steps }) => steps <= Math.max(2, known.length * 0.2))
    .sort((a, b) => a.steps - b.steps)[0]?.known;
}

/** `numSpecTokens` and `Num-Spec-Tokens` as `num_spec_tokens`. */
function spelled(key: string): string {
  return key
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase();
}

/** Whether each word of a key is the beginning of the other's. */
function shortens(key: string, known: string): boolean {
  const words = key.split('_');
  const whole = known.split('_');
  return (
    words.length === whole.length &&
    words.every((word, index) => word.length > 1 && (whole[index] ?? '').startsWith(word))
  );
}
