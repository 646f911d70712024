import type { Rule } from './rule.ts';
import {
  families,
  familyPattern,
  isHybrid,
  isNamedAfter,
  isOfFamily,
  offloadsExperts,
  predictsTokens,
  speculationOf,
  vllmArguments,
} from './served-model.ts';
import { jsonIn, type Setting, settingsOf, shown } from './settings.ts';

/** Types of the KV cache that are of 16 bits. */
const sixteenBits = ['auto', 'bfloat16', 'bf16', 'float16', 'fp16', 'half'];

export const glmKvCacheFp8: Rule = {
  id: 'glm-kv-cache-fp8',
  severity: 'refuse',
  reason:
    'GLM on gfx12 has no operation to decode an fp8 cache, and it would gain nothing: the reserve does not depend on the type',
  evidence:
    'runbook of the endpoint: rocm_aiter_mla_decode_fwd is missing, VLLM_ROCM_USE_AITER_MLA=1 does not help',
  remedy: 'set slot:shape.engine.kvCacheDtype to auto',
  examine: ({ release }) => {
    const type = vllmArguments(release)?.value('--kv-cache-dtype');
    const { gpuArchitecture = 'gfx12' } = release.review ?? {};
    if (type === undefined || sixteenBits.includes(type) || !isOfFamily(release, 'glm')) return undefined;
    if (!gpuArchitecture.startsWith('gfx12')) return undefined;
    return /^\w+$/.test(type)
      ? `--kv-cache-dtype ${type}`
      : `--kv-cache-dtype ${JSON.stringify(type)}, which is none of ${sixteenBits.join(', ')}`;
  },
};

/**
 * The methods whose experts the engine can offload. The runbook names the path of INC (AutoRound) alone, but the shape
 * in production since 2026-10-01 offloads the experts of an FP8 payload of Qwen.
 */
const offloadable = ['auto-round', 'inc'];
const offloadableOfQwen = [...offloadable, 'fp8'];

export const expertOffloadQuantization: Rule = {
  id: 'expert-offload-quantization',
  severity: 'refuse',
  reason:
    'only the path of INC (AutoRound), and with Qwen that of FP8, has a recipe to offload experts; a compressed-tensors checkpoint does not fit 64 GiB of GPU memory',
  evidence: 'runbook of the endpoint: the 182 GiB dealignai/GLM-5.3-Flash-CYBERSECURITY-W4A16',
  remedy: 'serve a payload whose config.json has quant_method auto-round or inc, or do without expertOffload',
  examine: ({ release, measured }) => {
    if (!offloadsExperts(release)) return undefined;
    if (measured?.quantization === null) return 'expert offload of a payload without quant_method';
    const method = measured?.quantization ?? release.review?.quantization;
    const methods = [method, vllmArguments(release)?.value('--quantization')];
    const good = isOfFamily(release, 'qwen') ? offloadableOfQwen : offloadable;
    const other = methods.find((known) => known !== undefined && !good.includes(known));
    return other && `expert offload of a payload with quantization ${other}`;
  },
};

export const toolParser: Rule = {
  id: 'tool-parser',
  severity: 'refuse',
  reason:
    'without tool choice and the parser of its model the engine answers HTTP 400, and every agent breaks',
  evidence: 'runbook of the endpoint: for GLM the parsers are glm45 and glm47, glm47 is the one to use',
  remedy:
    "set slot:shape.engine.toolParser to one of the model's; of a model without tools say callsTools: false in its file in models/",
  examine: ({ release }) => {
    const words = vllmArguments(release);
    if (words === undefined || release.review?.model?.callsTools === false) return undefined;
    const parser = words.value('--tool-call-parser');
    if (parser === undefined || parser === '') return 'no --tool-call-parser';
    if (!words.isOn('--enable-auto-tool-choice')) return 'no --enable-auto-tool-choice';
    return foreignParser('--tool-call-parser', parser, release.review?.model?.toolParsers);
  },
};

export const reasoningParser: Rule = {
  id: 'reasoning-parser',
  severity: 'refuse',
  reason: 'without the parser of its model the thinking leaks into the answer, and its own field is empty',
  evidence: 'runbook of the endpoint',
  remedy:
    "set slot:shape.engine.reasoningParser to one of the model's; of a model that does not think say thinks: false in its file in models/",
  examine: ({ release }) => {
    const words = vllmArguments(release);
    if (words === undefined || release.review?.model?.thinks === false) return undefined;
    const parser = words.value('--reasoning-parser');
    if (parser === undefined || parser === '') return 'no --reasoning-parser';
    return foreignParser('--reasoning-parser', parser, release.review?.model?.reasoningParsers);
  },
};

function foreignParser(flag: string, parser: string, known: readonly string[] = []): string | undefined {
  return known.length === 0 || known.includes(parser)
    ? undefined
    : `${flag} ${parser}, and the model's are ${known.join(', ')}`;
}

export const expertPrefetch: Rule = {
  id: 'expert-prefetch',
  severity: 'refuse',
  reason: 'prefetched experts are the wrong ones and push out the right ones',
  evidence: 'runbook of the endpoint: 36 % precision; decode was 40 to 51 % faster without',
  remedy: 'take the prefetch out of arguments and environment',
  examine: ({ release }) => {
    const found = settingsOf(release).find(prefetchesExperts);
    return found && shown(found);
  },
};

/** By its name, or by a value that names it among others, e.g. `--expert-policy lru,prefetch`. */
function prefetchesExperts({ name, value, isOn }: Setting): boolean {
  if (!isOn || !/expert|moe|offload|^r4d_/.test(name)) return false;
  return (
    name.includes('prefetch') ||
    /(?<![\w/-])prefetch\w*(?!\w*["']?\s*[=:]\s*["']?(?:0|false|off|no)\b)/i.test(value)
  );
}

export const glmOffloadedMtp: Rule = {
  id: 'glm-offloaded-mtp',
  severity: 'refuse',
  reason:
    'on a GLM whose experts are offloaded it costs 2.6 GiB of their arena and most of the prefill; where all experts are resident it would pay',
  evidence: 'experiment on record: prefill 255 tok/s instead of 918, decode 9.64 to 11.16 instead of 9.9',
  remedy: 'take slot:shape.engine.speculative out',
  examine: ({ release }) =>
    isOfFamily(release, 'glm') && offloadsExperts(release) && predictsTokens(release)
      ? speculationOf(release)?.shown
      : undefined,
};

export const hybridMtpPrefixCaching: Rule = {
  id: 'hybrid-mtp-prefix-caching',
  severity: 'warn',
  reason:
    'a prefix found in the cache brings a wrong state of the linear layers back to the drafts: broken tool calls, lost context, empty answers',
  evidence: 'vllm-project/vllm issues 47194 and 53912, pull request 43650; not measured on this host',
  remedy: 'set slot:shape.engine.prefixCaching to false, or say after a test of long conversations why not',
  examine: ({ release }) =>
    isOfFamily(release, 'qwen') &&
    isHybrid(release) &&
    predictsTokens(release) &&
    vllmArguments(release)?.isOn('--enable-prefix-caching') !== false
      ? `${speculationOf(release)?.shown} and prefix caching`
      : undefined,
};

export const profilerStack: Rule = {
  id: 'profiler-stack',
  severity: 'refuse',
  reason: 'a profile with stacks hangs when it is stopped, and its trace grows to tens of GB',
  evidence: 'runbook of the endpoint; with_stack is on unless it is set',
  remedy:
    'set torch_profiler_with_stack in --profiler-config to false, or VLLM_TORCH_PROFILER_WITH_STACK to 0',
  examine: ({ release }) => {
    const settings = settingsOf(release);
    for (const profiler of settings.filter(({ isOn }) => isOn)) {
      const switchName = stackSwitchOf(profiler);
      if (switchName === undefined) continue;
      const stack = settings.findLast(({ name }) => name === switchName);
      if (stack === undefined) return `${shown(profiler)}, and nothing says with_stack=false`;
      // vLLM takes every value of its variable but 0 for on.
      const isOff = stack.written.startsWith('-') ? !stack.isOn : stack.value === '0';
      if (!isOff) return shown(stack);
    }
    return undefined;
  },
};

/** Name of the setting that turns the stacks of this very profiler off; undefined: it is none. */
function stackSwitchOf({ name, value }: Setting): string | undefined {
  if (/(?:^|\.)profiler$/.test(name)) {
    return /^(?:cuda|xpu)$/.test(value) ? undefined : name.replace(/profiler$/, 'torch_profiler_with_stack');
  }
  // What can be read of it are settings of their own.
  if (name === 'profiler_config') {
    return jsonIn(value) === undefined ? `${name}.torch_profiler_with_stack` : undefined;
  }
  const [, folder, telemetry] = /^(.*profil(?:er|e|ing))_dir$|^(.*expert\w*profiler)$/.exec(name) ?? [];
  const stem = folder ?? telemetry;
  return stem && `${stem}_with_stack`;
}

export const modelNamedRight: Rule = {
  id: 'model-named-right',
  severity: 'refuse',
  reason: 'the memory plan and the rules are those of the model that the shape names',
  evidence: "the payload's name",
  remedy: 'name the file in models/ that is of this payload, or leave slot:shape.model out',
  examine: ({ release }) => {
    const family = release.review?.model?.family;
    if (family === undefined) return undefined;
    const named = families.filter((candidate) => isNamedAfter(release, candidate));
    return named.length === 0 || named.some((candidate) => familyPattern(candidate).test(family))
      ? undefined
      : `model of the family ${family}, and a payload named after ${named.join(' and ')}`;
  },
};
