import { treesOf } from '../payload-seals.ts';
import type { Rule, RuleSubject } from './rule.ts';
import { vllmArguments } from './served-model.ts';

/** What vLLM calls each method of a checkpoint, beside the name that its `config.json` has. */
const otherNames: Readonly<Record<string, readonly string[]>> = {
  'auto-round': ['inc'],
  inc: ['auto-round'],
  gptq: [],
  gptq_marlin: [],
  awq: [],
  awq_marlin: [],
  fp8: [],
  'compressed-tensors': [],
  bitsandbytes: [],
  modelopt: [],
  modelopt_fp4: [],
  mxfp4: [],
  quark: [],
  gguf: [],
};

/** Another way to compute the same checkpoint: which engines take it depends on version and GPU. */
const relatives: readonly (readonly string[])[] = [
  ['gptq', 'gptq_marlin', 'marlin', 'gptq_bitblas', 'moe_wna16'],
  ['awq', 'awq_marlin', 'moe_wna16'],
  ['modelopt', 'modelopt_fp4'],
];

/** Methods for which weights are quantized while they are loaded, so that a checkpoint need not name them. */
const online = ['fp8', 'bitsandbytes', 'experts_int8', 'ptpc_fp8', 'torchao'];

interface Pair {
  readonly flag: string;
  /** `none`: the checkpoint names no method. */
  readonly method: string;
}

/** Undefined: nothing is flagged, or nothing is known of the payload, or both say the same. */
function differentPair({ release, measured }: RuleSubject): Pair | undefined {
  const flag = vllmArguments(release)?.value('--quantization')?.toLowerCase();
  if (flag === undefined || flag === '') return undefined;
  const known =
    measured?.quantization === undefined ? release.review?.quantization : (measured.quantization ?? 'none');
  const method = known?.toLowerCase().replace('compressed_tensors', 'compressed-tensors');
  if (method === undefined || method === flag || otherNamesOf(method).includes(flag)) return undefined;
  if (method === 'none' && (online.includes(flag) || release.payload.entry !== undefined)) return undefined;
  return { flag, method };
}

/** Whether engines are known to refuse it. */
function isRefused({ flag, method }: Pair): boolean {
  const areRelated = relatives.some((names) => names.includes(flag) && names.includes(method));
  return (
    !areRelated && Object.hasOwn(otherNames, flag) && (method === 'none' || Object.hasOwn(otherNames, method))
  );
}

function otherNamesOf(method: string): readonly string[] {
  return Object.hasOwn(otherNames, method) ? (otherNames[method] ?? []) : [];
}

function shownPair({ flag, method }: Pair): string {
  return `--quantization ${flag}, and quant_method of the payload is ${method}`;
}

export const quantizationFlag: Rule = {
  id: 'quantization-flag',
  severity: 'refuse',
  reason: 'the engine refuses a method that is not the one of its checkpoint, after the old engine is gone',
  evidence:
    'vLLM: "Quantization method specified in the model config (fp8) does not match the quantization method specified in the `quantization` argument (gguf)", vllm-project/vllm issue 19050',
  remedy: 'take --quantization out of the arguments: the engine reads the method from config.json',
  examine: (subject) => {
    const pair = differentPair(subject);
    return pair && isRefused(pair) ? shownPair(pair) : undefined;
  },
};

export const quantizationFlagKnown: Rule = {
  id: 'quantization-flag-known',
  severity: 'warn',
  reason:
    'whether this engine takes the two together is not on record, and the rules for it changed between versions',
  evidence:
    'vllm-project/vllm issue 5677: gptq_marlin refused for a checkpoint of gptq, which other versions and GPUs take',
  remedy: 'take --quantization out of the arguments: the engine reads the method from config.json',
  examine: (subject) => {
    const pair = differentPair(subject);
    return pair && !isRefused(pair) ? shownPair(pair) : undefined;
  },
};

export const payloadSealed: Rule = {
  id: 'payload-sealed',
  severity: 'refuse',
  reason: 'the shape asks that hashes hold before a cutover, and nothing says which',
  evidence: 'preflight compares every byte with the manifest in payloads/, and refuses where there is none',
  remedy: 'npx slot payload seal <stack>, and commit what it writes; or slot:shape.payload.verify: inventory',
  examine: ({ release }) => {
    if (release.payload.verify !== 'hashes') return undefined;
    const unsealed = treesOf(release).flatMap(({ root, manifest }) => (manifest === undefined ? [root] : []));
    return unsealed.length === 0 ? undefined : `no manifest of ${unsealed.join(', ')}`;
  },
};
