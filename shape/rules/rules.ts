import { maskBesideIntegratedGpu, ncclProtocol, oneDeviceMask } from './devices.ts';
import {
  flagsCurrent,
  flagsKnown,
  flagsRecorded,
  flagsWhole,
  flagValues,
  imageKnown,
  parsersKnown,
  parsersRecorded,
} from './engine-flags.ts';
import { compileChangelist, dflashDrafter } from './experiments.ts';
import { factsToJudgeBy } from './host-facts.ts';
import { imageByDigest, imageWithoutTag } from './image.ts';
import { memlockForOffload, memlockWithUnit, openFilesExplicit, pidsExplicit } from './limits.ts';
import {
  activationFits,
  activationKilled,
  kvCacheBytesNeedPatch,
  kvCacheFits,
  memlockHoldsPinned,
  payloadOnRecord,
  pinnedFitsAfterStop,
  pinnedFitsGpuPages,
  pinnedFitsHost,
  residentExpertsFit,
  residentWeightsFit,
} from './memory.ts';
import {
  expertOffloadQuantization,
  expertPrefetch,
  glmKvCacheFp8,
  glmOffloadedMtp,
  hybridMtpPrefixCaching,
  modelNamedRight,
  profilerStack,
  reasoningParser,
  toolParser,
} from './model.ts';
import { guardedImportHook, mountsNotRelabelled, mountsReadOnly } from './mounts.ts';
import { noMovingText } from './moving-text.ts';
import { quantizationFlag, quantizationFlagKnown } from './payload.ts';
import type { Rule } from './rule.ts';
import { noSecretInUnit } from './secrets.ts';
import { readyTimeout, startWithoutTimeout, stopInOrder } from './timeouts.ts';
import { hostIpcWithoutSize, selinuxLabel, wordsSurvive } from './unit.ts';

/** All rules, in the order in which a review reads them. */
export const rules: readonly Rule[] = [
  imageByDigest,
  imageWithoutTag,
  glmKvCacheFp8,
  expertOffloadQuantization,
  expertPrefetch,
  toolParser,
  reasoningParser,
  glmOffloadedMtp,
  hybridMtpPrefixCaching,
  dflashDrafter,
  compileChangelist,
  profilerStack,
  oneDeviceMask,
  maskBesideIntegratedGpu,
  ncclProtocol,
  mountsReadOnly,
  mountsNotRelabelled,
  guardedImportHook,
  selinuxLabel,
  memlockWithUnit,
  memlockForOffload,
  pidsExplicit,
  openFilesExplicit,
  hostIpcWithoutSize,
  startWithoutTimeout,
  readyTimeout,
  stopInOrder,
  wordsSurvive,
  noSecretInUnit,
  noMovingText,
  kvCacheFits,
  kvCacheBytesNeedPatch,
  activationKilled,
  activationFits,
  residentExpertsFit,
  residentWeightsFit,
  memlockHoldsPinned,
  pinnedFitsHost,
  pinnedFitsAfterStop,
  pinnedFitsGpuPages,
  payloadOnRecord,
  modelNamedRight,
  quantizationFlag,
  quantizationFlagKnown,
  factsToJudgeBy,
  imageKnown,
  flagsKnown,
  flagsRecorded,
  flagsWhole,
  flagsCurrent,
  flagValues,
  parsersKnown,
  parsersRecorded,
];
