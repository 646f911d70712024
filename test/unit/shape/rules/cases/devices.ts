import { type Changes, planned, type RuleCases } from '../rule-cases.ts';

const glm = (changes: Changes = {}) => planned('glm-w4a16', changes);
const variables = (environment: object, host: Changes['host'] = {}) => glm({ shape: { environment }, host });
const r9700 = { gpuArchitecture: 'gfx1201' };
const devices = (...deviceFiles: string[]) => glm({ host: { ...r9700, deviceFiles } });
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
      ...['AMD_VISIBLE_DEVICES', 'NVIDIA_VISIBLE_DEVICES'].map((name) => ({
        what: `${name}, which counts as well`,
        release: variables({ ROCR_VISIBLE_DEVICES: '0,1', [name]: '0,1' }),
        found: name,
      })),
    ],
    silent: [
      { what: 'none', release: glm() },
      { what: 'one', release: variables({ ROCR_VISIBLE_DEVICES: '0,1' }) },
    ],
  },
  'device-mask-usable': {
    fires: [
      ...[
        ['', 'hides every GPU'],
        [' ', 'hides every GPU'],
        ['-1', 'hides every GPU'],
        ['-1,0', 'hides every GPU'],
        ['0,-1', 'names no GPU'],
        ['0-1', 'names no GPU'],
        ['0,', 'names no GPU'],
        ['0;1', 'names no GPU'],
        ['none', 'names no GPU'],
        ['0,0', 'names a GPU twice'],
        ['0,00', 'names a GPU twice'],
        ['GPU-0b5e7c526f2f4c0a,GPU-0B5E7C526F2F4C0A', 'names a GPU twice'],
        ['1', 'names 1 for 2 ranks'],
      ].flatMap(([mask = '', found = '']) => [
        {
          what: `ROCR_VISIBLE_DEVICES=${JSON.stringify(mask)}`,
          release: variables({ ROCR_VISIBLE_DEVICES: mask }),
          found,
        },
      ]),
      { what: 'the mask of HIP', release: variables({ HIP_VISIBLE_DEVICES: '0' }) },
      {
        what: 'a mask that is a secret',
        release: glm({ shape: { secrets: { ROCR_VISIBLE_DEVICES: { version: '1' } } } }),
        found: 'is a secret',
      },
      {
        what: 'a mask for ranks of another kind',
        release: glm({
          shape: {
            engine: { tensorParallel: 1, extraArguments: ['-dp', '2'] },
            environment: { ROCR_VISIBLE_DEVICES: '0' },
          },
        }),
      },
      {
        what: 'another engine that sees nothing',
        release: planned('r9v-q8_0', { shape: { environment: { HIP_VISIBLE_DEVICES: '-1' } } }),
      },
    ],
    silent: [
      { what: 'no mask', release: glm() },
      ...['0,1', '1,0', '0, 1', '0,1,2', 'GPU-0b5e7c526f2f4c0a,GPU-1b5e7c526f2f4c0a', 'all'].map((mask) => ({
        what: `ROCR_VISIBLE_DEVICES=${mask}`,
        release: variables({ ROCR_VISIBLE_DEVICES: mask }),
      })),
      {
        what: 'another engine with one of them',
        release: planned('r9v-q8_0', { shape: { environment: { HIP_VISIBLE_DEVICES: '1' } } }),
      },
    ],
  },
  'ranks-fit-gpus': {
    fires: [
      ...[
        ['--pipeline-parallel-size', '2'],
        ['-pp', '2'],
        ['--data-parallel-size=2'],
        ['--data_parallel_size', '2'],
        ['--prefill-context-parallel-size', '2'],
      ].map((words) => ({
        what: `two ranks, and ${words.join(' ')}`,
        release: glm({ shape: { engine: { extraArguments: words } } }),
        found: '4 ranks, and 2 in slot:host.gpus',
      })),
      {
        what: 'fewer GPUs than ranks',
        release: { ...glm(), gpus: ['0000:03:00.0'] },
        found: '2 ranks, and 1',
      },
    ],
    silent: [
      { what: 'a GPU for each', release: glm() },
      {
        what: 'one rank for each replica',
        release: glm({
          shape: { engine: { tensorParallel: 1, extraArguments: ['--data-parallel-size', '2'] } },
        }),
      },
      {
        what: 'replicas on other hosts',
        release: glm({
          shape: { engine: { extraArguments: ['-dp', '2', '--data-parallel-size-local', '1'] } },
        }),
      },
      { what: 'a host whose GPUs are not known', release: { ...glm(), gpus: [] } },
      { what: 'another engine', release: { ...planned('r9v-q8_0'), gpus: ['0000:03:00.0'] } },
    ],
  },
  'gpu-device-files': {
    fires: [
      { what: 'none', release: devices(), found: 'no /dev/kfd and no /dev/dri' },
      { what: 'no /dev/kfd', release: devices('/dev/dri'), found: 'no /dev/kfd' },
      { what: 'no node of a GPU', release: devices('/dev/kfd'), found: 'no /dev/dri' },
      { what: 'others', release: devices('/dev/kfd0', '/dev/driver') },
    ],
    silent: [
      { what: 'those of the host', release: glm() },
      { what: 'the folder of the nodes', release: devices('/dev/kfd', '/dev/dri') },
      { what: 'another spelling', release: devices('/dev//kfd', '/dev/dri/') },
      { what: 'a host without GPUs', release: { ...devices(), gpus: [] } },
      { what: 'GPUs of another maker', release: devices('/dev/nvidia0') },
      {
        what: 'GPUs of another architecture',
        release: glm({ host: { deviceFiles: [], gpuArchitecture: 'sm_90' } }),
      },
      { what: 'another engine', release: planned('r9v-q8_0', { host: { deviceFiles: [] } }) },
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
      { what: 'the protocol in capitals', release: variables({ NCCL_PROTO: 'SIMPLE' }, r9700) },
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
