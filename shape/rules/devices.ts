import { posix } from 'node:path';
import type { Release } from '../release.ts';
import type { Rule } from './rule.ts';
import { ranksOf, vllmArguments } from './served-model.ts';

/** Each hides GPUs, and each counts those that another has left. */
const masks = [
  'ROCR_VISIBLE_DEVICES',
  'HIP_VISIBLE_DEVICES',
  'CUDA_VISIBLE_DEVICES',
  'GPU_DEVICE_ORDINAL',
  'AMD_VISIBLE_DEVICES',
  'NVIDIA_VISIBLE_DEVICES',
];

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

export const deviceMaskUsable: Rule = {
  id: 'device-mask-usable',
  severity: 'refuse',
  reason: 'the engine takes a GPU of its own for each rank, and sees only those that the mask names',
  evidence: "ROCm's documentation of GPU isolation: an empty mask and -1 hide every GPU",
  remedy: 'name each GPU of the slot once, e.g. ROCR_VISIBLE_DEVICES=0,1, in slot:shape.environment',
  examine: ({ release }) => {
    for (const name of masksOf(release)) {
      const mask = release.environment[name];
      if (mask === undefined) return `${name} is a secret, so nobody sees which GPUs it names`;
      const fault = faultOfMask(mask, ranksOf(release));
      if (fault !== undefined) return `${name}=${mask} ${fault}`;
    }
    return undefined;
  },
};

function faultOfMask(mask: string, ranks: number): string | undefined {
  if (mask.trim() === 'all') return undefined;
  const devices = mask.split(',').map((device) => device.trim());
  if (mask.trim() === '' || devices[0] === '-1') return 'hides every GPU';
  const strange = devices.find((device) => !/^(?:\d+|GPU-[0-9a-f-]+)$/i.test(device));
  if (strange !== undefined) return `holds ${JSON.stringify(strange)}, which names no GPU`;
  const named = new Set(devices.map((device) => device.replace(/^0+(?=\d)/, '').toLowerCase())).size;
  if (named < devices.length) return 'names a GPU twice';
  return named < ranks ? `names ${named} for ${ranks} ranks` : undefined;
}

export const ranksFitGpus: Rule = {
  id: 'ranks-fit-gpus',
  severity: 'refuse',
  reason: 'each rank needs a GPU of its own, and the engine ends when it does not find one',
  evidence: "vLLM's ranks on a host: tensor × pipeline × data parallel",
  remedy: 'name all GPUs of the slot in slot:host.gpus, or take fewer ranks',
  examine: ({ release }) => {
    const ranks = ranksOf(release);
    const { length } = release.gpus;
    return length > 0 && ranks > length ? `${ranks} ranks, and ${length} in slot:host.gpus` : undefined;
  },
};

export const gpuDeviceFiles: Rule = {
  id: 'gpu-device-files',
  severity: 'refuse',
  reason: 'without its device files no program in the container sees a GPU',
  evidence: "ROCm's documentation of containers: /dev/kfd, and /dev/dri or the nodes of the GPUs in it",
  remedy: 'set slot:host.deviceFiles to /dev/kfd and /dev/dri, or to the nodes of the GPUs in it',
  examine: ({ release }) => {
    const files = release.deviceFiles.map((file) => posix.normalize(file).replace(/(?<=.)\/$/, ''));
    const isOfAmd = release.review?.gpuArchitecture?.startsWith('gfx') ?? true;
    if (!vllmArguments(release) || release.gpus.length === 0) return undefined;
    if (!isOfAmd || files.some((file) => file.startsWith('/dev/nvidia'))) return undefined;
    const missing = [
      ...(files.some((file) => file === '/dev/kfd' || file === '/dev') ? [] : ['/dev/kfd']),
      ...(files.some((file) => /^\/dev(?:\/dri(?:\/.+)?)?$/.test(file)) ? [] : ['/dev/dri']),
    ];
    return missing.length === 0 ? undefined : `no ${missing.join(' and no ')}`;
  },
};

export const ncclProtocol: Rule = {
  id: 'nccl-protocol',
  severity: 'warn',
  reason: 'on gfx1201 the collectives of RCCL can wait for each other for ever, both GPUs at 100 %',
  evidence:
    'ROCm/rocm-systems issue 5480, on two R9700: RCCL 2.27.3 worked, 2.27.7 of ROCm 7.2.1 hangs, and NCCL_PROTO=Simple helps; vllm-project/vllm issue 40980: that of ROCm 7.1.1 works, that of 7.2.x hangs; not seen on record with this image',
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
