import type { Rule } from './rule.ts';
import { isOfFamily, offloadsExperts } from './served-model.ts';

/** torch takes the first of these that is set. */
const variables = ['PYTORCH_ALLOC_CONF', 'PYTORCH_CUDA_ALLOC_CONF', 'PYTORCH_HIP_ALLOC_CONF'];

export const expandableSegments: Rule = {
  id: 'expandable-segments',
  severity: 'refuse',
  reason: 'without expandable segments the profile run or the capture of graphs finds no memory in one piece',
  evidence:
    'runbook of the endpoint, on GLM with offloaded experts: "Tried to allocate 662.00 MiB … 240.00 MiB is free"; part of the qualified shape, not tuning',
  remedy: 'set PYTORCH_CUDA_ALLOC_CONF in slot:shape.environment to expandable_segments:True',
  examine: ({ release }) => {
    if (!isOfFamily(release, 'glm') || !offloadsExperts(release)) return undefined;
    const hidden = variables.find((name) => release.secrets.some(({ variable }) => variable === name));
    if (hidden !== undefined) return `${hidden} is a secret, so nobody sees whether it says so`;
    const set = variables.filter((name) => (release.environment[name] ?? '') !== '');
    if (set.length === 0) return 'no PYTORCH_CUDA_ALLOC_CONF';
    const without = set.find((name) => !expands(release.environment[name] ?? ''));
    return without && `${without}=${release.environment[without]}`;
  },
};

/** Whether a list of options turns it on, as torch reads it: `True` alone, and not with another backend. */
function expands(options: string): boolean {
  const list = options.split(',');
  const said = list.filter((option) => option.includes('expandable_segments'));
  return (
    said.length > 0 &&
    said.every((option) => option === 'expandable_segments:True') &&
    list.every((option) => !option.startsWith('backend:') || option === 'backend:native')
  );
}
