import type { Rule } from './rule.ts';
import { offloadsExperts, vllmArguments } from './served-model.ts';

export const factsToJudgeBy: Rule = {
  id: 'facts-to-judge-by',
  severity: 'warn',
  reason: 'rules that depend on them are silent where they should speak',
  evidence: 'runbook of the endpoint: which of them hold for the host is for the operator to say',
  remedy: "set the keys, those of slot:host in the host's file: pulumi config set --path <key> <value>",
  examine: ({ release, measured }) => {
    const { model, quantization, gpuArchitecture, integratedGpu, selinux } = release.review ?? {};
    const hasGpu = release.deviceFiles.length > 0;
    const missing = [
      ...(model === undefined && release.engineKind === 'vllm' ? ['slot:shape.model'] : []),
      ...(quantization === undefined && measured?.quantization === undefined && offloadsExperts(release)
        ? ['slot:shape.payload.quantization']
        : []),
      ...(gpuArchitecture === undefined && hasGpu && vllmArguments(release)
        ? ['slot:host.gpuArchitecture']
        : []),
      ...(integratedGpu === undefined && hasGpu && !('ROCR_VISIBLE_DEVICES' in release.environment)
        ? ['slot:host.integratedGpu']
        : []),
      ...(selinux === undefined ? ['slot:host.selinux'] : []),
    ];
    return missing.length === 0 ? undefined : `not known: ${missing.join(', ')}`;
  },
};
