import type { Figure } from './figure.ts';
import { known, type MemorySubject, notKnown } from './subject.ts';

const memlockNamed = { id: 'memlock', label: 'locked memory limit', scope: 'rank' } as const;
const gateNamed = { id: 'memory-gate', label: 'MemAvailable gate', scope: 'host' } as const;
const availableNamed = { id: 'memory-available', label: 'MemAvailable', scope: 'host' } as const;
const afterStopNamed = { id: 'memory-after-stop', label: 'after the stop', scope: 'host' } as const;
const totalNamed = { id: 'memory-total', label: 'MemTotal', scope: 'host' } as const;
const pagesNamed = { id: 'gpu-pages', label: 'GPU drivers may have', scope: 'host' } as const;
const headroomNamed = { id: 'memory-headroom', label: 'headroom', scope: 'host' } as const;

/** The host's memory and its limits, and what the pinned experts leave of it. */
export function hostFigures(subject: MemorySubject): readonly Figure[] {
  const { release, measured } = subject;
  const { memlock, memoryGateBytes } = release;
  const memory = measured?.memory;
  return [
    memlock === 'infinity'
      ? { ...known(memlockNamed, 0, 'configured', 'LimitMEMLOCK of the unit'), amount: 'no limit' }
      : known(memlockNamed, memlock, 'configured', 'LimitMEMLOCK of the unit'),
    ...(memoryGateBytes === 0
      ? []
      : [
          known(
            gateNamed,
            memoryGateBytes,
            'configured',
            'memoryGate of the host, once the old engine is gone',
          ),
        ]),
    ...(memory === undefined ? [] : [known(availableNamed, memory.availableBytes, 'measured', 'now')]),
    ...measuredFigure(afterStopNamed, memory?.afterStopBytes, 'with what the running engine gives back'),
    ...measuredFigure(totalNamed, memory?.totalBytes, 'of /proc/meminfo'),
    ...measuredFigure(pagesNamed, memory?.gpuPagesBytes, 'pages_limit of the module ttm'),
    ...headroom(subject),
  ];
}

function measuredFigure(
  named: Parameters<typeof known>[0],
  bytes: number | undefined,
  formula: string,
): readonly Figure[] {
  return bytes === undefined ? [] : [known(named, bytes, 'measured', formula)];
}

/** Below zero: the pinned experts do not fit. */
function headroom({ release, demand, measured, plan }: MemorySubject): readonly Figure[] {
  if (!demand?.offload) return [];
  const pinned = plan.amount('pinned', 'host');
  if (pinned === undefined) return [notKnown(headroomNamed, 'the pinned memory is not known')];
  const { availableBytes, engineRuns, afterStopBytes } = measured?.memory ?? {};
  const forecast = engineRuns ? afterStopBytes : availableBytes;
  if (forecast !== undefined) {
    const formula = engineRuns ? 'MemAvailable after the stop − pinned' : 'MemAvailable − pinned';
    return [known(headroomNamed, forecast - pinned, 'derived', formula)];
  }
  if (release.memoryGateBytes === 0)
    return [notKnown(headroomNamed, 'the host was not asked and has no gate')];
  return [known(headroomNamed, release.memoryGateBytes - pinned, 'derived', 'gate − pinned')];
}
