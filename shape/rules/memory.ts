import { renderedArguments } from '../engines/rendered-arguments.ts';
import { comparisonText, countText, sizeText } from '../memory/amounts.ts';
import { demandOf } from '../memory/demand.ts';
import type { FigureId } from '../memory/figure.ts';
import { needLaw } from '../memory/kv-cache-figures.ts';
import { fitsFrom } from '../memory/laws.ts';
import { memoryPlanOf } from '../memory/plan.ts';
import { isOnRecord } from '../memory/subject.ts';
import type { PayloadFacts } from '../payload-facts.ts';
import type { Release } from '../release.ts';
import type { Rule } from './rule.ts';

export const kvCacheFits: Rule = {
  id: 'kv-cache-fits',
  severity: 'refuse',
  reason:
    'with offloaded experts the engine caps its KV cache at its own plan, and does not boot where it needs more',
  evidence:
    'on record for GLM: at 131,072 tokens with MTP "2.07 GiB KV cache is needed … available 1.74 GiB", and a refusal below about 92k tokens without',
  remedy:
    'take another maxModelLength; with MTP, do without it, or lift the cap by kvCacheMemory and gpu_worker-kv-cap.patch as the arm on record did',
  examine: ({ release, measured }) => {
    const plan = memoryPlanOf(release, measured);
    const need = plan.amount('kv-need');
    const available = plan.amount('kv-available');
    if (need === undefined || available === undefined || need <= available) return undefined;
    return `KV cache needed at ${countText(release.maxModelLength)} tokens ${comparisonText(need, available)} allowed${crossing(release)}`;
  },
};

/** From which length on the engine's own cap is enough. */
function crossing(release: Release): string {
  const demand = demandOf(release);
  const record = release.review?.model?.memory;
  if (demand === undefined || demand.kvCacheBytes !== undefined || !isOnRecord(record, demand.ranks))
    return '';
  const law = needLaw(demand, record);
  const tokens = law && fitsFrom(law, record.cap);
  return tokens === undefined ? '' : `; it fits from ${countText(tokens)} tokens on`;
}

export const kvCacheBytesNeedPatch: Rule = {
  id: 'kv-cache-bytes-need-patch',
  severity: 'warn',
  reason: 'with offloaded experts the engine caps its KV cache at its own plan, whatever is asked for',
  evidence: 'on record for GLM: explicit --kv-cache-memory-bytes took effect with gpu_worker-kv-cap.patch',
  remedy: 'add the patch gpu_worker-kv-cap.patch to slot:shape.patches, or take kvCacheMemory out',
  examine: ({ release }) => {
    const demand = demandOf(release);
    if (!demand?.offload || demand.kvCacheBytes === undefined || demand.kvCapLifted) return undefined;
    return `--kv-cache-memory-bytes ${demand.kvCacheBytes} without a patch of gpu_worker.py that lifts the cap`;
  },
};

/** What cannot be larger than what the engine claims of a GPU, as the plan calls it. */
const withinClaim: readonly (readonly [FigureId, string])[] = [
  ['kv-reserve', 'KV reserve'],
  ['kv-need', 'KV cache needed'],
  ['kv-available', 'KV cache allowed'],
  ['arena', 'arena of the experts'],
];

export const planFitsGpu: Rule = {
  id: 'plan-fits-gpu',
  severity: 'refuse',
  reason:
    'the engine plans its KV cache and its experts into what it claims of the GPU, and does not boot without',
  evidence:
    'derived: the laws on record at this length, against the memory of the GPU times the utilization; explicit bytes as they are',
  remedy:
    'take a smaller maxModelLength or kvCacheMemory, or more gpuMemoryUtilization where the GPU has the memory',
  examine: ({ release, measured }) => {
    const demand = demandOf(release);
    if (demand === undefined) return undefined;
    const asked = renderedArguments(release.arguments).number('--kv-cache-memory-bytes');
    if (asked !== undefined && asked <= 0) return `--kv-cache-memory-bytes ${asked}`;
    const plan = memoryPlanOf(release, measured);
    const claim = plan.amount('gpu-claim');
    if (claim === undefined) return undefined;
    const parts = [
      ['--kv-cache-memory-bytes', asked] as const,
      ...withinClaim.map(([id, what]) => [what, plan.amount(id)] as const),
    ];
    const exceeding = parts.find(([, bytes]) => bytes !== undefined && bytes > claim);
    if (exceeding !== undefined) {
      const [what, bytes = 0] = exceeding;
      return `${what} at ${countText(release.maxModelLength)} tokens ${comparisonText(bytes, claim)} claimed`;
    }
    const rest = plan.amount('gpu-rest') ?? 0;
    return rest < 0
      ? `what the plan holds is ${sizeText(-rest)} more than the ${sizeText(claim)} claimed`
      : undefined;
  },
};

export const activationKilled: Rule = {
  id: 'activation-killed',
  severity: 'refuse',
  reason: 'the profile run takes memory by the tokens of one step, beside what the engine has claimed',
  evidence: 'on record for GLM: 2.06 GiB at 8,192 batched tokens killed two boots at utilization 0.95',
  remedy: 'take fewer maxBatchedTokens, as the shape on record with 2,048, or less gpuMemoryUtilization',
  examine: ({ release, measured }) => {
    const demand = demandOf(release);
    const killed = release.review?.model?.memory?.activation.killed;
    if (demand?.batchedTokens === undefined || killed === undefined) return undefined;
    if (demand.batchedTokens < killed.tokens || demand.utilization < killed.utilization) return undefined;
    const peak = memoryPlanOf(release, measured).amount('activation-peak');
    const how = `${countText(demand.batchedTokens)} batched tokens at utilization ${demand.utilization}`;
    return peak === undefined ? how : `${how}: ${sizeText(peak)} at the peak of the profile run`;
  },
};

export const activationFits: Rule = {
  id: 'activation-fits',
  severity: 'warn',
  reason: 'what the profile run takes at its peak must fit beside what the engine claims of the GPU',
  evidence:
    'derived: it holds for the two boots that died (2.00 GiB beside 0.95 of 32 GiB) and for the arms that booted (0.50 GiB beside 0.92 and 0.98)',
  remedy: 'take fewer maxBatchedTokens or less gpuMemoryUtilization',
  examine: ({ release, measured }) => {
    const plan = memoryPlanOf(release, measured);
    const peak = plan.amount('activation-peak');
    const unclaimed = plan.amount('gpu-unclaimed');
    if (peak === undefined || unclaimed === undefined || peak <= unclaimed) return undefined;
    return `activation peak ${comparisonText(peak, unclaimed)} left unclaimed`;
  },
};

export const residentExpertsFit: Rule = {
  id: 'resident-experts-fit',
  severity: 'refuse',
  reason: 'experts that are not offloaded lie in the memory that the engine claims of the GPU',
  evidence: 'derived: number of experts times the slot of one, against GPU memory times utilization',
  remedy: 'set slot:shape.engine.expertOffload to true',
  examine: ({ release, measured }) => {
    const plan = memoryPlanOf(release, measured);
    const experts = plan.amount('resident-experts');
    const claim = plan.amount('gpu-claim');
    if (experts === undefined || claim === undefined || experts <= claim) return undefined;
    return `experts of one rank ${comparisonText(experts, claim)} claimed`;
  },
};

export const residentWeightsFit: Rule = {
  id: 'resident-weights-fit',
  severity: 'refuse',
  reason: 'weights that are not offloaded lie in the memory that the engine claims of the GPUs',
  evidence: "derived: the payload's size, shared by the ranks, against GPU memory times utilization",
  remedy: 'take a smaller payload, more GPUs (tensorParallel), or offload the experts (expertOffload)',
  examine: ({ release, measured }) => {
    const demand = demandOf(release);
    const { expected } = release.payload;
    const weights = expected?.bytes ?? expected?.sizeBytes;
    const gpu = measured?.gpuMemoryBytes ?? release.review?.gpuMemoryBytes;
    if (demand === undefined || demand.offload || weights === undefined || gpu === undefined)
      return undefined;
    const share = Math.floor(weights / demand.ranks);
    const claim = Math.floor(gpu * demand.utilization);
    return share <= claim ? undefined : `weights of one rank ${comparisonText(share, claim)} claimed`;
  },
};

export const memlockHoldsPinned: Rule = {
  id: 'memlock-holds-pinned',
  severity: 'refuse',
  reason: 'each rank pins its experts in host memory, which the limit of its process must allow',
  evidence: 'on record for GLM: 73.64 GiB per rank, and LimitMEMLOCK=infinity for it',
  remedy: 'set slot:shape.limits.memlock to infinity',
  examine: ({ release, measured }) => {
    const pinned = memoryPlanOf(release, measured).amount('pinned', 'rank');
    const { memlock } = release;
    if (pinned === undefined || memlock === 'infinity' || pinned <= memlock) return undefined;
    return `pinned by one rank ${comparisonText(pinned, memlock)} of LimitMEMLOCK`;
  },
};

export const pinnedFitsHost: Rule = {
  id: 'pinned-fits-host',
  severity: 'refuse',
  reason: 'the ranks pin all experts at once: where the host has less, the plan of the experts dies at boot',
  evidence: 'on record for GLM: ExpertPlanError: host holds 5113 of 12096 swappable experts',
  remedy: 'free memory on the host, and set slot:host.memoryGate above what is pinned',
  examine: ({ release, measured }) => {
    const pinned = memoryPlanOf(release, measured).amount('pinned', 'host');
    if (pinned === undefined) return undefined;
    const { totalBytes, availableBytes, engineRuns } = measured?.memory ?? {};
    const limits: readonly (readonly [string, number | undefined])[] = [
      ['of MemTotal', totalBytes],
      ['of MemAvailable in an empty slot', engineRuns === false ? availableBytes : undefined],
      ['of the memory gate', release.memoryGateBytes === 0 ? undefined : release.memoryGateBytes],
    ];
    const [exceeded] = limits.flatMap(([what, limit]) =>
      limit !== undefined && pinned > limit ? [`${comparisonText(pinned, limit)} ${what}`] : [],
    );
    return exceeded && `pinned by all ranks ${exceeded}`;
  },
};

export const pinnedFitsAfterStop: Rule = {
  id: 'pinned-fits-after-stop',
  severity: 'warn',
  reason:
    'by the forecast too little memory will be available for the pinned experts; the gate after the stop decides',
  evidence:
    "forecast: MemAvailable, and the larger of the engine's own and its GPU-mapped memory; memory pinned for a GPU is charged to nobody (measured)",
  remedy: 'look for other users of memory on the host before the cutover',
  examine: ({ release, measured }) => {
    const pinned = memoryPlanOf(release, measured).amount('pinned', 'host');
    const { engineRuns, afterStopBytes } = measured?.memory ?? {};
    if (pinned === undefined || !engineRuns || afterStopBytes === undefined || pinned <= afterStopBytes) {
      return undefined;
    }
    return `pinned by all ranks ${comparisonText(pinned, afterStopBytes)} forecast after the stop`;
  },
};

export const pinnedFitsGpuPages: Rule = {
  id: 'pinned-fits-gpu-pages',
  severity: 'warn',
  reason:
    'what GPU drivers allocate for the engine may not be more than the pages_limit of the kernel module ttm, by default half of the memory; memory that the engine registers itself is not counted',
  evidence:
    'Linux: ttm_global_init in drivers/gpu/drm/ttm/ttm_device.c, amdgpu_amdkfd_gpuvm_init_mem_limits in amdgpu_amdkfd_gpuvm.c',
  remedy:
    'raise it: ttm.pages_limit=<pages of 4 KiB> on the kernel command line; see /sys/module/ttm/parameters',
  examine: ({ release, measured }) => {
    const pinned = memoryPlanOf(release, measured).amount('pinned', 'host');
    const limit = measured?.memory?.gpuPagesBytes;
    if (pinned === undefined || limit === undefined || pinned <= limit) return undefined;
    return `pinned by all ranks ${comparisonText(pinned, limit)} of ttm's pages_limit`;
  },
};

export const payloadOnRecord: Rule = {
  id: 'payload-on-record',
  severity: 'refuse',
  reason:
    'a payload with other experts, layers or quantization is another model: nothing on record holds for it',
  evidence: "the payload's config.json and the names of its tensors, read on the host",
  remedy: 'name the payload that is meant, or the model and the quantization that it has',
  examine: ({ release, measured }) => {
    const payload = measured?.payload;
    if (payload === undefined) return undefined;
    const differences = differencesOf(payload, release);
    return differences.length === 0 ? undefined : differences.join(', ');
  },
};

function differencesOf(payload: PayloadFacts, { review }: Release): readonly string[] {
  const experts = review?.model?.experts;
  const compared: readonly (readonly [string, string | number | null, string | number | undefined])[] = [
    ['layers with experts', payload.expertLayers, experts?.layers],
    ['experts in a layer', payload.expertsPerLayer, experts?.perLayer],
    ['quantization', canonical(payload.quantization?.method ?? 'none'), canonical(review?.quantization)],
  ];
  return compared.flatMap(([what, found, wanted]) =>
    found === null || wanted === undefined || found === wanted
      ? []
      : [`${what}: ${found} instead of ${wanted}`],
  );
}

/** INC is vLLM's name for what AutoRound writes. */
function canonical<Method extends string | undefined>(method: Method): Method | 'auto-round' {
  return method === 'inc' ? 'auto-round' : method;
}
