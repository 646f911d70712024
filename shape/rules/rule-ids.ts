import * as z from 'zod';

/** Every rule by its id, the name by which a shape is excepted from it. */
export const ruleIds = [
  'image-by-digest',
  'image-without-tag',
  'glm-kv-cache-fp8',
  'expert-offload-quantization',
  'expert-prefetch',
  'tool-parser',
  'reasoning-parser',
  'glm-offloaded-mtp',
  'hybrid-mtp-prefix-caching',
  'dflash-drafter',
  'compile-changelist',
  'expandable-segments',
  'profiler-stack',
  'one-device-mask',
  'device-mask-usable',
  'ranks-fit-gpus',
  'gpu-device-files',
  'mask-beside-integrated-gpu',
  'nccl-protocol',
  'mounts-read-only',
  'state-apart-from-models',
  'mount-targets',
  'mounts-not-relabelled',
  'guarded-import-hook',
  'selinux-label',
  'memlock-with-unit',
  'memlock-for-offload',
  'pids-explicit',
  'open-files-explicit',
  'host-ipc-without-size',
  'start-without-timeout',
  'ready-timeout',
  'stop-in-order',
  'words-survive',
  'no-secret-in-unit',
  'no-secret-by-name',
  'no-moving-text',
  'kv-cache-fits',
  'kv-cache-bytes-need-patch',
  'plan-fits-gpu',
  'activation-killed',
  'activation-fits',
  'resident-experts-fit',
  'resident-weights-fit',
  'memlock-holds-pinned',
  'pinned-fits-host',
  'pinned-fits-after-stop',
  'pinned-fits-gpu-pages',
  'payload-on-record',
  'payload-sealed',
  'model-named-right',
  'quantization-flag',
  'quantization-flag-known',
  'facts-to-judge-by',
  'image-known',
  'image-engine',
  'image-entrypoint',
  'word-length',
  'prefill-in-one-step',
  'flags-known',
  'flags-recorded',
  'flags-whole',
  'flags-current',
  'flag-values',
  'parsers-known',
  'parsers-recorded',
] as const;
export type RuleId = (typeof ruleIds)[number];

/**
 * Rules that hold for every shape. What breaks them never starts, or does what cannot be taken back: a reason does
 * not make it good.
 */
const unconditionalRuleIds: readonly RuleId[] = [
  'image-by-digest',
  'image-without-tag',
  'mounts-read-only',
  'mounts-not-relabelled',
  'host-ipc-without-size',
  'words-survive',
  'no-secret-in-unit',
];

export const ruleIdSchema = z.enum(ruleIds);

/** Whether the rule holds for every shape. */
export function isUnconditional(id: string): boolean {
  return (unconditionalRuleIds as readonly string[]).includes(id);
}
