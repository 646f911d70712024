import { type Changes, planned, type RuleCases } from '../rule-cases.ts';

const glm = (changes: Changes = {}) => planned('glm-w4a16', changes);
const variables = (environment: object, host: Changes['host'] = {}) => glm({ shape: { environment }, host });
const r9700 = { gpuArchitecture: 'gfx1201' };
const withRccl = (rcclFixed: boolean) => {
  const knowledge = { complete: false, flags: {}, toolParsers: [], reasoningParsers: [] };
  const release = glm({ host: r9700 });
  return {
    ...release,
    review: { exceptions: {}, ...release.review, image: { name: 'an-image', rcclFixed, ...knowledge } },
  };
};

export const cases: RuleCases = {
  'one-device-mask': {
    fires: [
      {
        what: 'the masks of ROCm and of HIP',
        release: variables({ ROCR_VISIBLE_DEVICES: '0,1', HIP_VISIBLE_DEVICES: '0,1' }),
        found: 'ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES',
      },
      {
        what: 'the mask of CUDA',
        release: variables({ ROCR_VISIBLE_DEVICES: '0', CUDA_VISIBLE_DEVICES: '0' }),
      },
      { what: 'that of OpenCL', release: variables({ HIP_VISIBLE_DEVICES: '0', GPU_DEVICE_ORDINAL: '0' }) },
      {
        what: 'one that is a secret',
        release: glm({
          shape: {
            environment: { ROCR_VISIBLE_DEVICES: '0' },
            secrets: { HIP_VISIBLE_DEVICES: { version: '1' } },
          },
        }),
      },
    ],
    silent: [
      { what: 'none', release: glm() },
      { what: 'one', release: variables({ ROCR_VISIBLE_DEVICES: '0,1' }) },
    ],
  },
  'mask-beside-integrated-gpu': {
    fires: [
      { what: 'a GPU in the processor', release: glm({ host: { integratedGpu: true } }) },
      {
        what: 'a mask that counts after it',
        release: variables({ HIP_VISIBLE_DEVICES: '0,1' }, { integratedGpu: true }),
      },
      { what: 'another engine', release: planned('r9v-q8_0', { host: { integratedGpu: true } }) },
    ],
    silent: [
      { what: 'a mask', release: variables({ ROCR_VISIBLE_DEVICES: '0,1' }, { integratedGpu: true }) },
      { what: 'no GPU in the processor', release: glm({ host: { integratedGpu: false } }) },
      { what: 'an engine without devices', release: glm({ host: { integratedGpu: true, deviceFiles: [] } }) },
    ],
  },
  'nccl-protocol': {
    fires: [
      {
        what: 'two ranks on gfx1201',
        release: glm({ host: r9700 }),
        found: 'no NCCL_PROTO with tensor parallel 2',
      },
      { what: 'another protocol', release: variables({ NCCL_PROTO: 'LL' }, r9700), found: 'NCCL_PROTO=LL' },
      { what: 'an image that is known not to be', release: withRccl(false) },
      { what: 'a choice of protocols', release: variables({ NCCL_PROTO: 'Simple,LL' }, r9700) },
    ],
    silent: [
      { what: 'the protocol', release: variables({ NCCL_PROTO: 'Simple' }, r9700) },
      { what: 'an image that is known to be fixed', release: withRccl(true) },
      { what: 'one rank', release: glm({ host: r9700, shape: { engine: { tensorParallel: 1 } } }) },
      { what: 'another GPU', release: glm({ host: { gpuArchitecture: 'gfx942' } }) },
      { what: 'another engine', release: planned('r9v-q8_0', { host: r9700 }) },
    ],
  },
  'facts-to-judge-by': {
    fires: [
      {
        what: 'a host of which nothing is known',
        release: glm({
          host: { gpuArchitecture: undefined, integratedGpu: undefined, selinux: undefined } as object,
        }),
        found: 'slot:host.gpuArchitecture, slot:host.integratedGpu, slot:host.selinux',
      },
      { what: 'a shape that names no model', release: glm(), found: 'slot:shape.model' },
    ],
    silent: [
      {
        what: 'all facts',
        release: glm({
          host: { gpuArchitecture: 'gfx1201', integratedGpu: false, selinux: 'disabled' },
          shape: { payload: { quantization: 'auto-round' } },
          model: {
            name: 'GLM',
            family: 'glm',
            hybrid: true,
            toolParsers: [],
            reasoningParsers: [],
          } as unknown as NonNullable<Changes['model']>,
        }),
      },
      {
        what: 'an engine that needs none of them',
        release: planned('r9v-q8_0', { host: { selinux: 'disabled', deviceFiles: [] } }),
      },
    ],
  },
};
