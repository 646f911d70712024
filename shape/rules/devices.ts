import type { Release } from '../release.ts';
import type { Rule } from './rule.ts';
import { vllmArguments } from './served-model.ts';

/** Each hides GPUs, and each counts those that another has left. */
const masks = ['ROCR_VISIBLE_DEVICES', 'HIP_VISIBLE_DEVICES', 'CUDA_VISIBLE_DEVICES', 'GPU_DEVICE_ORDINAL'];

function masksOf({ environment, secrets }: Release): readonly string[] {
  return masks.filter((name) => name in environment || secrets.some(({ variable }) => variable === name));
}

export const oneDeviceMask: Rule = {
  id: 'one-device-mask',
  severity: 'refuse',
  reason:
    'a second mask counts the GPUs that the first has left, so together they hide what neither means to',
  evidence: "ROCm's documentation of GPU isolation",
  remedy: 'keep ROCR_VISIBLE_DEVICES alone',
  examine: ({ release }) => {
    const found = masksOf(release);
    return found.length > 1 ? found.join(' and ') : undefined;
  },
};

export const maskBesideIntegratedGpu: Rule = {
  id: 'mask-beside-integrated-gpu',
  severity: 'refuse',
  reason: "the engine would count the processor's own GPU among its ranks",
  evidence: 'common to ROCm hosts with a GPU in the processor (field reports)',
  remedy: 'set ROCR_VISIBLE_DEVICES in slot:shape.environment to the GPUs of the slot, e.g. 0,1',
  examine: ({ release }) =>
    release.review?.integratedGpu === true &&
    release.deviceFiles.length > 0 &&
    !masksOf(release).includes('ROCR_VISIBLE_DEVICES')
      ? 'no ROCR_VISIBLE_DEVICES on a host with a GPU in its processor'
      : undefined,
};

export const ncclProtocol: Rule = {
  id: 'nccl-protocol',
  severity: 'warn',
  reason: 'on gfx1201 the collectives of RCCL can wait for each other for ever, both GPUs at 100 %',
  evidence:
    'vllm-project/vllm issue 40980 and ROCm/rocm-systems issue 5480, on two R9700; RCCL before 2.28.3; not seen on record with this image',
  remedy:
    "set NCCL_PROTO in slot:shape.environment to Simple, or rcclFixed in the image's file in images/ where it is known to be",
  examine: ({ release }) => {
    const ranks = vllmArguments(release)?.number('--tensor-parallel-size') ?? 1;
    const { gpuArchitecture, image } = release.review ?? {};
    const protocol = release.environment.NCCL_PROTO ?? '';
    if (ranks < 2 || gpuArchitecture !== 'gfx1201' || /^simple$/i.test(protocol)) return undefined;
    if (image?.rcclFixed === true) return undefined;
    const found = protocol === '' ? 'no NCCL_PROTO' : `NCCL_PROTO=${protocol}`;
    return `${found} with tensor parallel ${ranks} on ${gpuArchitecture}`;
  },
};
