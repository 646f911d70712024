import { createPatch } from 'diff';
import { planned, type RuleCases } from '../rule-cases.ts';

const draft = { method: 'dflash', model: '/draft', num_speculative_tokens: 8 };
const eagle = { method: 'eagle3', num_speculative_tokens: 4 };
const mounts = [{ source: 'GLM-5.3-Flash-DFlash2', target: '/draft' }];
const glm = (shape: object) => planned('glm-w4a16', { shape });
const variables = (environment: object) => glm({ environment });

const target = '/usr/lib/python3/dist-packages/vllm/compilation/wrapper.py';
const diff = (patchedSha256: string) =>
  [
    `Target: ${target}`,
    `Base-SHA256: ${'1'.repeat(64)}`,
    `Patched-SHA256: ${patchedSha256}`,
    createPatch(target.slice(1), 'old\n', 'new\n'),
  ].join('\n');
const patched = (name: string, patchedSha256 = '2'.repeat(64)) =>
  planned('glm-w4a16', { shape: { patches: [name] }, patches: { [name]: diff(patchedSha256) } });
const recorded = ['6e9cb81b', '0751852e', '732363bb', '84969993', 'c154115a'];

const speculative = (engine: object, ...more: object[]) =>
  glm({ engine: { speculative: engine }, mounts: more });
const words = (...extraArguments: string[]) => glm({ engine: { extraArguments }, mounts });

export const cases: RuleCases = {
  'dflash-drafter': {
    fires: [
      { what: 'the method', release: glm({ engine: { speculative: draft }, mounts }), found: 'dflash' },
      {
        what: 'a later version of it',
        release: glm({ engine: { speculative: { ...draft, method: 'dflash2' } } }),
      },
      {
        what: 'its drafter under another method',
        release: glm({ engine: { speculative: { ...draft, method: 'draft_model' } }, mounts }),
        found: 'GLM-5.3-Flash-DFlash2',
      },
      {
        what: 'its drafter and no method',
        release: speculative({ model: '/draft', num_speculative_tokens: 8 }, ...mounts),
        found: 'no method, which makes it dflash',
      },
      {
        what: 'its drafter with a / behind it',
        release: speculative({ ...eagle, model: '/draft/' }, ...mounts),
      },
      {
        what: 'its drafter by a way around',
        release: speculative({ ...eagle, model: '/d/../draft/.' }, ...mounts),
      },
      {
        what: 'its drafter below a mount',
        release: speculative({ ...eagle, model: '/d/GLM-5.3-Flash-DFlash2' }, { source: '.', target: '/d' }),
      },
      {
        what: 'a mount whose target has a / behind it',
        release: speculative({ ...eagle, model: '/draft' }, { ...mounts[0], target: '/draft/' }),
      },
      {
        what: 'the weights on record under another name',
        release: speculative(
          { ...eagle, model: '/draft' },
          {
            source: 'drafter',
            target: '/draft',
            expected: { files: { 'model.safetensors': { bytes: 2_342_169_800 } } },
          },
        ),
        found: 'recorded weights',
      },
      {
        what: 'the hash on record under another name',
        release: speculative(
          { ...eagle, model: '/draft' },
          { source: 'drafter', target: '/draft', expected: { files: { x: { sha256: 'b038e1d9' } } } },
        ),
      },
      {
        what: 'a drafter of the hub',
        release: speculative({ ...eagle, model: 'zai/GLM-5.3-Flash-DFlash2' }),
      },
      { what: 'the short flags', release: words('--spec-method', 'dflash', '--spec-model', '/draft') },
      { what: 'the short flag of the drafter alone', release: words('--spec_model=/draft') },
      { what: 'keys behind dots', release: words('--speculative-config.model', '/draft') },
    ],
    silent: [
      { what: 'no speculation', release: glm({ mounts }) },
      {
        what: 'another drafter',
        release: glm({
          engine: { speculative: { ...draft, method: 'eagle' } },
          mounts: [{ source: 'GLM-Eagle', target: '/draft' }],
        }),
      },
      {
        what: 'another model',
        release: planned('qwen-fp8-mtp4', { shape: { engine: { speculative: draft } } }),
      },
      { what: 'what says that there is none', release: words('--speculative-config', 'null') },
      {
        what: 'another drafter beside that mount',
        release: speculative({ ...eagle, model: '/eagle' }, ...mounts, { source: 'E', target: '/eagle' }),
      },
    ],
  },
  'compile-changelist': {
    fires: [
      {
        what: 'its variables',
        release: variables({
          R4D_GLM_FUSE_QKV_RMSNORM: '0',
          VLLM_COMPILE_FULLGRAPH: '0',
          VLLM_USE_AOT_COMPILE: '0',
        }),
        found: 'R4D_GLM_FUSE_QKV_RMSNORM=0, VLLM_COMPILE_FULLGRAPH=0, VLLM_USE_AOT_COMPILE=0',
      },
      ...['0', ' 0', '00', '0 ', '"0"', 'false', 'off', '0.0'].map((value) => ({
        what: `one of them, as ${JSON.stringify(value)}`,
        release: variables({ VLLM_COMPILE_FULLGRAPH: value }),
      })),
      { what: 'another of them', release: variables({ R4D_GLM_FUSE_QKV_RMSNORM: '0' }) },
      {
        what: 'one of them as a secret',
        release: glm({ secrets: { VLLM_COMPILE_FULLGRAPH: { version: '1' } } }),
        found: '[secret]',
      },
      { what: 'one of its patches', release: patched('glm53-compile-03.patch'), found: 'glm53-compile-03' },
      { what: 'one of its patches in a folder', release: patched('old/compile-05.patch') },
      ...recorded.map((hash) => ({
        what: `a patch of any name that makes ${hash}…`,
        release: patched('a.patch', hash.padEnd(64, '0')),
        found: 'a.patch',
      })),
      {
        what: 'such a patch below another',
        release: planned('glm-w4a16', {
          shape: { patches: ['a.patch', 'b.patch'] },
          patches: {
            'a.patch': diff('6e9cb81b'.padEnd(64, '0')),
            'b.patch': diff('3'.repeat(64)).replace('1'.repeat(64), '6e9cb81b'.padEnd(64, '0')),
          },
        }),
        found: 'a.patch',
      },
    ],
    silent: [
      { what: 'none of it', release: glm({}) },
      { what: 'the variables as they are by default', release: variables({ VLLM_USE_AOT_COMPILE: '1' }) },
      { what: 'one of them without a value', release: variables({ VLLM_COMPILE_FULLGRAPH: '' }) },
      {
        what: 'ahead-of-time compilation off, and no more',
        release: variables({ VLLM_USE_AOT_COMPILE: '0' }),
      },
      { what: 'another patch', release: patched('glm53-other.patch') },
      { what: 'a patch with more of that name', release: patched('recompile-011.patch') },
      {
        what: 'another model',
        release: planned('qwen-fp8-mtp4', { shape: { environment: { VLLM_COMPILE_FULLGRAPH: '0' } } }),
      },
    ],
  },
  'expandable-segments': {
    fires: [
      { what: 'nothing said of it', release: allocator({}), found: 'no PYTORCH_CUDA_ALLOC_CONF' },
      ...[
        'expandable_segments:False',
        'expandable_segments:true',
        'expandable_segments: True',
        ' expandable_segments:True',
        '"expandable_segments:True"',
        'expandable_segments',
        'max_split_size_mb:512',
        'expandable_segments:True,expandable_segments:False',
        'backend:cudaMallocAsync,expandable_segments:True',
      ].map((value) => ({
        what: JSON.stringify(value),
        release: allocator({ PYTORCH_CUDA_ALLOC_CONF: value }),
        found: value,
      })),
      { what: 'no value', release: allocator({ PYTORCH_CUDA_ALLOC_CONF: '' }) },
      {
        what: 'another variable that torch reads first',
        release: allocator({
          PYTORCH_ALLOC_CONF: 'max_split_size_mb:512',
          PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True',
        }),
        found: 'PYTORCH_ALLOC_CONF=',
      },
      {
        what: 'a secret',
        release: {
          ...allocator({}),
          secrets: [{ variable: 'PYTORCH_CUDA_ALLOC_CONF', name: 'frank-archon-PYTORCH_CUDA_ALLOC_CONF-1' }],
        },
      },
    ],
    silent: [
      { what: 'the qualified shape', release: glm({}) },
      ...['PYTORCH_ALLOC_CONF', 'PYTORCH_HIP_ALLOC_CONF'].map((name) => ({
        what: name,
        release: allocator({ [name]: 'expandable_segments:True' }),
      })),
      {
        what: 'other options beside it',
        release: allocator({
          PYTORCH_CUDA_ALLOC_CONF: 'max_split_size_mb:512,expandable_segments:True,backend:native',
        }),
      },
      {
        what: 'experts that are not offloaded',
        release: {
          ...glm({ engine: { expertOffload: false, expertPreciseMemory: false } }),
          environment: {},
        },
      },
      { what: 'another model', release: { ...planned('qwen-fp8-mtp4'), environment: {} } },
      { what: 'another engine', release: planned('r9v-q8_0') },
    ],
  },
};

function allocator(environment: Readonly<Record<string, string>>) {
  return { ...glm({}), environment };
}
