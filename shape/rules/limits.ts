import { decodeSize } from '../systemd.ts';
import { type UnitText, unitTextOf } from '../unit-text.ts';
import type { Rule } from './rule.ts';
import { offloadsExperts } from './served-model.ts';

export const memlockWithUnit: Rule = {
  id: 'memlock-with-unit',
  severity: 'refuse',
  reason:
    'a bare number is bytes here and KiB in ulimit, and -1 is refused where the hard limit may not be raised',
  evidence: 'ulimit -l prints KiB, podman and systemd take bytes (field reports)',
  remedy: 'set slot:shape.limits.memlock to infinity or to a size with its unit',
  examine: ({ release }) => {
    const unit = unitTextOf(release);
    const limit = unit.last('Service', 'LimitMEMLOCK');
    if (limit === undefined) return 'no LimitMEMLOCK';
    const bytes = decodeSize(limit);
    if (bytes === undefined) return `LimitMEMLOCK=${limit}`;
    if (bytes !== release.memlock)
      return `LimitMEMLOCK=${limit}, and the engine is checked for ${release.memlock}`;
    const own = ulimitsOf(unit).filter((value) => value.startsWith('memlock='));
    return own.length > 0 ? `--ulimit=${own[0]} beside LimitMEMLOCK` : undefined;
  },
};

function ulimitsOf(unit: UnitText): readonly string[] {
  return unit.container?.values('--ulimit') ?? [];
}

export const memlockForOffload: Rule = {
  id: 'memlock-for-offload',
  severity: 'refuse',
  reason:
    'offloaded experts are pinned in host memory, 73.64 GiB per rank with GLM: under a limit the engine fails late',
  evidence:
    'runbook of the endpoint: LimitMEMLOCK=infinity on the unit, and the container must really get it',
  remedy: 'set slot:shape.limits.memlock to infinity',
  examine: ({ release }) => {
    if (!offloadsExperts(release)) return undefined;
    const unit = unitTextOf(release);
    const limit = unit.last('Service', 'LimitMEMLOCK');
    if (limit !== 'infinity' || release.memlock !== 'infinity')
      return `expert offload with LimitMEMLOCK=${limit ?? ''}`;
    return ulimitsOf(unit).includes('host')
      ? undefined
      : 'no --ulimit=host, so the container gets another limit than the unit';
  },
};

export const pidsExplicit: Rule = {
  id: 'pids-explicit',
  severity: 'refuse',
  reason: 'unless it is told podman allows 2048 processes and threads; -1 once meant its default',
  evidence: "podman's default pids_limit (field reports)",
  remedy: 'set slot:shape.limits.pids to infinity or to a number',
  examine: ({ release }) => {
    const unit = unitTextOf(release);
    const limits = unit.container?.values('--pids-limit') ?? [];
    const tasks = unit.last('Service', 'TasksMax');
    if (limits.length !== 1)
      return limits.length === 0 ? 'no --pids-limit' : `--pids-limit=${limits.join(', ')}`;
    if (!/^\d+$/.test(limits[0] ?? '')) return `--pids-limit=${limits[0]}`;
    return tasks === 'infinity'
      ? undefined
      : `TasksMax=${tasks ?? ''} stands above the container's own limit`;
  },
};

/** What podman gives a container whatever the unit says. */
const openFiles = '1048576';

export const openFilesExplicit: Rule = {
  id: 'open-files-explicit',
  severity: 'refuse',
  reason: `podman raises its own limit, which the engine inherits, to ${openFiles} whatever it was: another number would not hold`,
  evidence:
    'measured on a virtual machine with podman 5.4.2; default_ulimits in containers.conf goes above it (measured on a lab)',
  remedy: `LimitNOFILE=${openFiles}`,
  examine: ({ release }) => {
    const limit = unitTextOf(release).last('Service', 'LimitNOFILE');
    return limit === openFiles ? undefined : limit === undefined ? 'no LimitNOFILE' : `LimitNOFILE=${limit}`;
  },
};
