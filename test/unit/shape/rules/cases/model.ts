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
      ...[
        ' fp8',
        'fp8 ',
        '"fp8"',
        'FP8',
        'float8',
        'float8_e4m3fn',
        'e4m3',
        'e5m2',
        'fp8_e5m2',
        'fp8_inc',
      ].map((kvCacheDtype) => ({ what: JSON.stringify(kvCacheDtype), release: glm({ kvCacheDtype }) })),
      ...['nvfp4', 'int8', 'fp8_ds_mla', 'turboquant_k8v4', 'of-tomorrow'].map((kvCacheDtype) => ({
        what: kvCacheDtype,
        release: glm({ kvCacheDtype }),
        found: kvCacheDtype,
      })),
      { what: 'a later fp8', release: extra('--kv_cache_dtype=fp8') },
      {
        what: 'fp8 of a payload that nobody named a model of',
        release: planned('glm-w4a16', {
          shape: {
            engine: { kvCacheDtype: 'fp8', servedName: 'main' },
            payload: { folder: 'Intel_GLM-5.3-Flash-W4A16' },
          },
        }),
      },
      ...['models--Intel--GLM-5.3/snapshots/0a1b2c3d4e5f', 'chatglm3-6b', 'zai_chatGLM', 'x-GLM5'].map(
        (folder) => ({
          what: `fp8 of ${folder}`,
          release: planned('glm-w4a16', {
            shape: { engine: { kvCacheDtype: 'fp8', servedName: 'main' }, payload: { folder } },
          }),
        }),
      ),
    ],
    silent: [
      { what: 'auto', release: glm({ kvCacheDtype: 'auto' }) },
      { what: 'float16', release: glm({ kvCacheDtype: 'float16' }) },
      {
        what: 'fp8 of a payload that is named so by chance',
        release: planned('glm-w4a16', {
          shape: { engine: { kvCacheDtype: 'fp8', servedName: 'main' }, payload: { folder: 'niglma-7b' } },
        }),
      },
      {
        what: 'fp8 of another payload in a folder of that name',
        release: planned('glm-w4a16', {
          shape: { engine: { kvCacheDtype: 'fp8', servedName: 'main' }, payload: { folder: 'glm/Other-7B' } },
        }),
      },
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
      { what: 'its short name', release: extra('-q', 'compressed-tensors') },
      { what: 'its short name with the value behind it', release: extra('-qcompressed-tensors') },
      { what: 'its short name with a sign between', release: extra('-q=compressed-tensors') },
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
        what: 'no parser of a model that only does not think',
        release: glm({ toolParser: undefined }, { model: modelOf('glm', { thinks: false }) }),
      },
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
      {
        what: 'a model that calls no tools',
        release: glm({ toolParser: undefined }, { model: modelOf('glm', { callsTools: false }) }),
      },
      { what: 'another engine', release: r9v },
    ],
  },
  'reasoning-parser': {
    fires: [
      { what: 'no parser', release: glm({ reasoningParser: undefined }) },
      { what: 'a parser of another model', release: glm({ reasoningParser: 'qwen3' }, { model: glmModel }) },
      {
        what: 'no parser of a model that only calls no tools',
        release: glm({ reasoningParser: undefined }, { model: modelOf('glm', { callsTools: false }) }),
      },
    ],
    silent: [
      {
        what: "the other one of the model's",
        release: glm({ reasoningParser: 'glm45' }, { model: glmModel }),
      },
      {
        what: 'a model that does not think',
        release: glm({ reasoningParser: undefined }, { model: modelOf('glm', { thinks: false }) }),
      },
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
      { what: 'the fork’s variable without the word', release: variables({ R4D_PREFETCH: '1' }) },
      { what: 'a policy', release: extra('--expert-policy', 'prefetch') },
      { what: 'a policy of JSON', release: extra('--expert-config', '{"expert_policy":"prefetch"}') },
      { what: 'a list', release: extra('--expert-policy', 'lru,prefetch') },
      { what: 'a list of words', release: extra('--expert-policies', 'lru', 'prefetch') },
      { what: 'a list of JSON', release: extra('--expert-config', '{"policies":["lru","prefetch_next"]}') },
      { what: 'JSON in a variable', release: variables({ R4D_EXPERTS: '{"cache":{"prefetch":2}}' }) },
      { what: 'options in a variable', release: variables({ R4D_EXPERT_OPTIONS: 'slots=2,prefetch=1' }) },
      { what: 'what is not turned off', release: variables({ VLLM_DISABLE_EXPERT_PREFETCH: '0' }) },
    ],
    silent: [
      { what: 'nothing of it', release: glm({}) },
      { what: 'a switch that is off', release: extra('--no-enable-expert-prefetch') },
      { what: 'a variable that is off', release: variables({ VLLM_EXPERT_PREFETCH: '0' }) },
      { what: 'a key that is off', release: extra('--expert-config', '{"prefetch":false}') },
      { what: 'a depth of 0', release: extra('--expert-prefetch-depth=0') },
      { what: 'a rate of 0.0', release: extra('--expert-prefetch-rate', '0.0') },
      { what: 'a switch against it', release: extra('--disable-expert-prefetch') },
      { what: 'a key against it', release: extra('--expert-config', '{"disable_prefetch":true}') },
      ...['VLLM_DISABLE_EXPERT_PREFETCH', 'NO_EXPERT_PREFETCH', 'EXPERT_PREFETCH_DISABLED'].map((name) => ({
        what: name,
        release: variables({ [name]: '1' }),
      })),
      { what: 'an option that is off', release: variables({ R4D_EXPERT_OPTIONS: 'slots=2,prefetch=0' }) },
      { what: 'a policy without it', release: extra('--expert-policy', 'lru,no-prefetch') },
      { what: 'a file of that name', release: variables({ R4D_EXPERT_TRACE: '/logs/prefetch.json' }) },
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
      {
        what: 'no method',
        release: glm({ speculative: { num_speculative_tokens: 4 } }),
        found: 'no method, which makes it mtp',
      },
      { what: 'an empty method', release: glm({ speculative: { ...mtp, method: '' } }) },
      { what: 'a method of null', release: glm({ speculative: { ...mtp, method: null } }) },
      {
        what: 'the payload as the drafter',
        release: glm({ speculative: { model: '/model', num_speculative_tokens: 4 } }),
      },
      {
        what: 'the payload as a model that drafts',
        release: glm({ speculative: { method: 'draft_model', model: '/model/', num_speculative_tokens: 4 } }),
      },
      { what: 'a drafter that says nothing', release: glm({ speculative: { model: '/draft' } }) },
      { what: 'its name in capitals', release: glm({ speculative: { ...mtp, method: 'MTP' } }) },
      {
        what: 'the short flags',
        release: extra('--spec-method', 'mtp', '--spec-tokens', '4'),
        found: '--spec-method',
      },
      { what: 'the short flag of the number', release: extra('--spec-tokens=4') },
      { what: 'the short name', release: extra('-sc', '{"method":"mtp"}') },
      { what: 'underscores', release: extra('--speculative_config={"method":"mtp"}') },
      { what: 'JSON that cannot be read', release: extra('--speculative-config', "{'method':'mtp'}") },
      { what: 'keys behind dots', release: extra('--speculative-config.num_speculative_tokens', '4') },
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
      { what: 'another method by the short flag', release: extra('--spec-method', 'ngram') },
      { what: 'another method by its model', release: glm({ speculative: { model: 'ngram' } }) },
      { what: 'another drafter by its name', release: glm({ speculative: { model: 'yuhuili/EAGLE-GLM' } }) },
      { what: 'what says that there is none', release: extra('--speculative-config', 'None') },
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
      {
        what: 'no method',
        release: qwen({ prefixCaching: true, speculative: { num_speculative_tokens: 4 } }),
      },
      {
        what: 'the short flags',
        release: qwen({
          prefixCaching: true,
          speculative: undefined,
          extraArguments: ['--spec-method', 'mtp'],
        }),
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
      {
        what: 'stacks off for another profiler',
        release: planned('glm-w4a16', {
          shape: {
            engine: { extraArguments: ['--profiler-config', '{"torch_profiler_with_stack":false}'] },
            environment: { VLLM_TORCH_PROFILER_DIR: '/profile' },
          },
        }),
        found: 'VLLM_TORCH_PROFILER_DIR=/profile, and nothing',
      },
      {
        what: 'stacks off by another variable',
        release: variables({ VLLM_TORCH_PROFILER_DIR: '/profile', X_WITH_STACK: '0' }),
      },
      {
        what: 'stacks off for the variables alone',
        release: planned('glm-w4a16', {
          shape: {
            engine: { extraArguments: ['--profiler-config', '{"torch_profiler_dir":"/p"}'] },
            environment: { VLLM_TORCH_PROFILER_DIR: '/profile', VLLM_TORCH_PROFILER_WITH_STACK: '0' },
          },
        }),
      },
      ...['false', '', ' 0', '00'].map((value) => ({
        what: `the variable at ${JSON.stringify(value)}, which is on`,
        release: variables({ VLLM_TORCH_PROFILER_DIR: '/profile', VLLM_TORCH_PROFILER_WITH_STACK: value }),
      })),
      {
        what: 'a configuration that cannot be read',
        release: extra('--profiler-config', "{'profiler':'torch'}"),
      },
      { what: 'the profiler of the experts', release: variables({ R4D_EXPERT_PROFILER_DIR: '/p' }) },
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
      { what: 'a profiler without stacks', release: extra('--profiler-config', '{"profiler":"cuda"}') },
      {
        what: 'a configuration that turns none on',
        release: extra('--profiler-config', '{"profiler":null}'),
      },
      {
        what: 'keys behind dots',
        release: extra(
          '--profiler-config.torch_profiler_dir=/p',
          '--profiler-config.torch_profiler_with_stack=false',
        ),
      },
      { what: 'names of scopes', release: variables({ VLLM_CUSTOM_SCOPES_FOR_PROFILING: '1' }) },
      {
        what: 'the profiler of the experts without stacks',
        release: variables({ R4D_EXPERT_PROFILER_DIR: '/p', R4D_EXPERT_PROFILER_WITH_STACK: '0' }),
      },
    ],
  },
  'model-named-right': {
    fires: [
      {
        what: 'a model of another family',
        release: glm({}, { model: modelOf('qwen', {}) }),
        found: 'a payload named after glm',
      },
      {
        what: 'a payload behind a snapshot',
        release: planned('glm-w4a16', {
          shape: { payload: { folder: 'models--Qwen--Qwen3.8/snapshots/0a1b2c3d' } },
          model: glmModel,
        }),
      },
      { what: 'a file of another family', release: planned('r9v-q8_0', { model: glmModel }) },
    ],
    silent: [
      { what: 'no model', release: glm({}) },
      { what: 'the model of the payload', release: glm({}, { model: glmModel }) },
      { what: 'a family by a longer name', release: glm({}, { model: modelOf('chatglm', {}) }) },
      {
        what: 'a payload named after two families',
        release: planned('glm-w4a16', { shape: { payload: { folder: 'GLM-Qwen-merge' } }, model: glmModel }),
      },
      {
        what: 'a payload whose name says nothing',
        release: planned('glm-w4a16', { shape: { payload: { folder: 'a' } }, model: modelOf('qwen', {}) }),
      },
      {
        what: 'a served name that clients know from another model',
        release: planned('glm-w4a16', { shape: { engine: { servedName: 'qwen3' } }, model: glmModel }),
      },
    ],
  },
};

function withoutWord(release: ReturnType<typeof planned>, word: string) {
  return { ...release, arguments: release.arguments.filter((argument) => argument !== word) };
}
