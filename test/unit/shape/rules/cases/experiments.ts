import { createPatch } from 'diff';
import { planned, type RuleCases } from '../rule-cases.ts';

const draft = { method: 'dflash', model: '/draft', num_speculative_tokens: 8 };
const mounts = [{ source: 'GLM-5.3-Flash-DFlash2', target: '/draft' }];
const glm = (shape: object) => planned('glm-w4a16', { shape });
const variables = (environment: object) => glm({ environment });

const target = '/usr/lib/python3/dist-packages/vllm/compilation/wrapper.py';
const diff = [
  `Target: ${target}`,
  `Base-SHA256: ${'1'.repeat(64)}`,
  `Patched-SHA256: ${'2'.repeat(64)}`,
  createPatch(target.slice(1), 'old\n', 'new\n'),
].join('\n');
const patched = (name: string) =>
  planned('glm-w4a16', { shape: { patches: [name] }, patches: { [name]: diff } });

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
      { what: 'one of them', release: variables({ VLLM_USE_AOT_COMPILE: '0' }) },
      { what: 'one of its patches', release: patched('glm53-compile-03.patch'), found: 'glm53-compile-03' },
    ],
    silent: [
      { what: 'none of it', release: glm({}) },
      { what: 'the variables as they are by default', release: variables({ VLLM_USE_AOT_COMPILE: '1' }) },
      { what: 'another patch', release: patched('glm53-other.patch') },
      {
        what: 'another model',
        release: planned('qwen-fp8-mtp4', { shape: { environment: { VLLM_USE_AOT_COMPILE: '0' } } }),
      },
    ],
  },
};
