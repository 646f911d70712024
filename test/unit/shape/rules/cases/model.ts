import type { Model } from '../../../../../shape/model.ts';
import { type Changes, planned, type RuleCases } from '../rule-cases.ts';

const glm = (engine: object, changes: Changes = {}) =>
  planned('glm-w4a16', { ...changes, shape: { ...changes.shape, engine } });
const qwen = (engine: object, changes: Changes = {}) =>
  planned('qwen-fp8-mtp4', { ...changes, shape: { engine } });
const extra = (...extraArguments: string[]) => glm({ extraArguments });
const variables = (environment: object) => planned('glm-w4a16', { shape: { environment } });
const r9v = planned('r9v-q8_0');

const glmModel: Model = modelOf('glm', {
  toolParsers: ['glm47', 'glm45'],
  reasoningParsers: ['glm47', 'glm45'],
});
const mtp = { method: 'mtp', num_speculative_tokens: 4 };

function modelOf(family: string, changes: Partial<Model>): Model {
  return { name: family, family, hybrid: true, toolParsers: [], reasoningParsers: [], ...changes } as Model;
}

export const cases: RuleCases = {
  'glm-kv-cache-fp8': {
    fires: [
      { what: 'fp8', release: glm({ kvCacheDtype: 'fp8' }), found: '--kv-cache-dtype fp8' },
      { what: 'fp8_e4m3', release: glm({ kvCacheDtype: 'fp8_e4m3' }) },
      { what: 'fp8 and a model file', release: glm({ kvCacheDtype: 'fp8' }, { model: glmModel }) },
      {
        what: 'fp8 on gfx1201',
        release: glm({ kvCacheDtype: 'fp8' }, { host: { gpuArchitecture: 'gfx1201' } }),
      },
      {
        what: 'fp8 on gfx1200',
        release: glm({ kvCacheDtype: 'fp8' }, { host: { gpuArchitecture: 'gfx1200' } }),
      },
    ],
    silent: [
      { what: 'auto', release: glm({ kvCacheDtype: 'auto' }) },
      { what: 'bfloat16', release: glm({ kvCacheDtype: 'bfloat16' }) },
      {
        what: 'fp8 on gfx942',
        release: glm({ kvCacheDtype: 'fp8' }, { host: { gpuArchitecture: 'gfx942' } }),
      },
      { what: 'fp8 of another model', release: qwen({ kvCacheDtype: 'fp8' }) },
      {
        what: 'fp8 of a model of another family, whatever its name',
        release: glm({ kvCacheDtype: 'fp8' }, { model: modelOf('qwen', {}) }),
      },
      {
        what: 'another engine',
        release: { ...r9v, arguments: [...r9v.arguments, '--kv-cache-dtype', 'fp8'] },
      },
    ],
  },
  'expert-offload-quantization': {
    fires: [
      {
        what: 'a payload that is compressed-tensors',
        release: glm({}),
        measured: { quantization: 'compressed-tensors' },
        found: 'compressed-tensors',
      },
      {
        what: 'a payload that is to be compressed-tensors',
        release: planned('glm-w4a16', { shape: { payload: { quantization: 'compressed-tensors' } } }),
      },
      { what: 'a payload that is not quantized', release: glm({}), measured: { quantization: null } },
      { what: 'gptq', release: glm({}), measured: { quantization: 'gptq' } },
      {
        what: 'FP8 of a model that is not in production with it',
        release: glm({}),
        measured: { quantization: 'fp8' },
      },
      {
        what: 'a payload that is another than it is to be',
        release: planned('glm-w4a16', { shape: { payload: { quantization: 'auto-round' } } }),
        measured: { quantization: 'compressed-tensors' },
      },
      { what: 'the flag', release: extra('--quantization', 'compressed-tensors') },
    ],
    silent: [
      { what: 'the FP8 payload in production', release: qwen({}), measured: { quantization: 'fp8' } },
      { what: 'auto-round', release: glm({}), measured: { quantization: 'auto-round' } },
      { what: 'inc', release: glm({}), measured: { quantization: 'inc' } },
      {
        what: 'what nobody knows',
        release: planned('glm-w4a16', { shape: { payload: { quantization: undefined } } }),
      },
      {
        what: 'all experts resident',
        release: glm({ expertOffload: false, expertPreciseMemory: false }),
        measured: { quantization: 'compressed-tensors' },
      },
      { what: 'another engine', release: r9v, measured: { quantization: 'compressed-tensors' } },
    ],
  },
  'tool-parser': {
    fires: [
      { what: 'no parser', release: glm({ toolParser: undefined }), found: 'no --tool-call-parser' },
      {
        what: 'a parser of another model',
        release: glm({ toolParser: 'hermes' }, { model: glmModel }),
        found: 'glm47, glm45',
      },
      {
        what: 'a parser without tool choice',
        release: withoutWord(glm({}), '--enable-auto-tool-choice'),
        found: 'no --enable-auto-tool-choice',
      },
    ],
    silent: [
      { what: 'the parser of the shape', release: glm({}) },
      { what: "the other one of the model's", release: glm({ toolParser: 'glm45' }, { model: glmModel }) },
      { what: 'a model whose parsers are not known', release: glm({}, { model: modelOf('glm', {}) }) },
      { what: 'another engine', release: r9v },
    ],
  },
  'reasoning-parser': {
    fires: [
      { what: 'no parser', release: glm({ reasoningParser: undefined }) },
      { what: 'a parser of another model', release: glm({ reasoningParser: 'qwen3' }, { model: glmModel }) },
    ],
    silent: [
      { what: 'the parser of the shape', release: glm({}, { model: glmModel }) },
      { what: 'another engine', release: r9v },
    ],
  },
  'expert-prefetch': {
    fires: [
      { what: 'a switch', release: extra('--enable-expert-prefetch'), found: '--enable-expert-prefetch' },
      { what: 'a count', release: extra('--expert-prefetch-depth', '2'), found: '--expert-prefetch-depth 2' },
      { what: 'underscores', release: extra('--moe_prefetch=1') },
      { what: 'a key of JSON', release: extra('--expert-config', '{"cache":{"prefetch":true}}') },
      { what: 'a key behind a dot', release: extra('--expert-config.prefetch', '4') },
      {
        what: 'a variable',
        release: variables({ VLLM_EXPERT_PREFETCH: '1' }),
        found: 'VLLM_EXPERT_PREFETCH=1',
      },
      { what: 'the fork’s variable', release: variables({ R4D_PREFETCH_EXPERTS: 'on' }) },
    ],
    silent: [
      { what: 'nothing of it', release: glm({}) },
      { what: 'a switch that is off', release: extra('--no-enable-expert-prefetch') },
      { what: 'a variable that is off', release: variables({ VLLM_EXPERT_PREFETCH: '0' }) },
      { what: 'a key that is off', release: extra('--expert-config', '{"prefetch":false}') },
      { what: 'a depth of 0', release: extra('--expert-prefetch-depth=0') },
      { what: 'a prefetch of something else', release: variables({ SAFETENSORS_PREFETCH: '1' }) },
    ],
  },
  'glm-offloaded-mtp': {
    fires: [
      { what: 'mtp', release: glm({ speculative: mtp }), found: 'mtp' },
      { what: 'the model’s own name for it', release: glm({ speculative: { ...mtp, method: 'glm5_mtp' } }) },
      {
        what: 'a cap of the KV cache, which only enables it',
        release: glm({ speculative: mtp, kvCacheMemory: { bytes: 2 ** 31 } }),
      },
    ],
    silent: [
      { what: 'no speculation', release: glm({}) },
      {
        what: 'all experts resident',
        release: glm({ speculative: mtp, expertOffload: false, expertPreciseMemory: false }),
      },
      { what: 'another model', release: planned('qwen-fp8-mtp4') },
      {
        what: 'another method',
        release: glm({ speculative: { method: 'ngram', num_speculative_tokens: 4 } }),
      },
    ],
  },
  'hybrid-mtp-prefix-caching': {
    fires: [
      {
        what: 'the production shape',
        release: planned('qwen-fp8-mtp4', { shape: { engine: { prefixCaching: true } } }),
      },
      {
        what: 'the model’s own name for it',
        release: qwen({ prefixCaching: true, speculative: { ...mtp, method: 'qwen3_next_mtp' } }),
      },
      {
        what: 'what the engine does unless it is told',
        release: withoutWord(qwen({ prefixCaching: true }), '--enable-prefix-caching'),
      },
    ],
    silent: [
      { what: 'no prefix caching', release: qwen({ prefixCaching: false }) },
      { what: 'no speculation', release: qwen({ prefixCaching: true, speculative: undefined }) },
      {
        what: 'a Qwen without linear layers',
        release: qwen({ prefixCaching: true }, { model: modelOf('qwen', { hybrid: false }) }),
      },
      { what: 'another model', release: glm({ speculative: mtp }) },
      { what: 'another engine', release: r9v },
    ],
  },
  'profiler-stack': {
    fires: [
      { what: 'a directory alone', release: variables({ VLLM_TORCH_PROFILER_DIR: '/profile' }) },
      {
        what: 'a variable that is on',
        release: variables({ VLLM_TORCH_PROFILER_DIR: '/profile', VLLM_TORCH_PROFILER_WITH_STACK: '1' }),
        found: 'VLLM_TORCH_PROFILER_WITH_STACK=1',
      },
      {
        what: 'a configuration that says nothing of it',
        release: extra('--profiler-config', '{"profiler":"torch","torch_profiler_dir":"/profile"}'),
      },
      {
        what: 'a configuration that says true',
        release: extra('--profiler-config', '{"torch_profiler_dir":"/p","torch_profiler_with_stack":true}'),
      },
      { what: 'keys behind dots', release: extra('--profiler-config.torch_profiler_dir', '/profile') },
    ],
    silent: [
      { what: 'no profiler', release: glm({}) },
      {
        what: 'a variable that is off',
        release: variables({ VLLM_TORCH_PROFILER_DIR: '/profile', VLLM_TORCH_PROFILER_WITH_STACK: '0' }),
      },
      {
        what: 'a configuration that says false',
        release: extra('--profiler-config', '{"torch_profiler_dir":"/p","torch_profiler_with_stack":false}'),
      },
      { what: 'an empty directory', release: variables({ VLLM_TORCH_PROFILER_DIR: '' }) },
    ],
  },
};

function withoutWord(release: ReturnType<typeof planned>, word: string) {
  return { ...release, arguments: release.arguments.filter((argument) => argument !== word) };
}
