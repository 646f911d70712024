import { type UnitText, unitTextOf } from '../unit-text.ts';
import type { Rule } from './rule.ts';
import { vllmArguments } from './served-model.ts';

export const startWithoutTimeout: Rule = {
  id: 'start-without-timeout',
  severity: 'refuse',
  reason: 'with a cold page cache a finite one ends the load, and the restarts after it, for ever',
  evidence: 'docs/architecture.md; systemd ends a start after 90 s unless it is told otherwise',
  remedy: 'TimeoutStartSec=infinity: the cutover has the deadline, slot:shape.deadlines.boot',
  examine: ({ release }) => {
    const unit = unitTextOf(release);
    const lines = unit.directives.filter(
      ({ section, name }) => section === 'Service' && /^Timeout(?:Start)?Sec$/.test(name),
    );
    const { name, value } = lines.at(-1) ?? { name: '', value: '' };
    if (name === '') return 'no TimeoutStartSec';
    return value === 'infinity' || value === '0' ? undefined : `${name}=${value}`;
  },
};

/** Of vLLM, in seconds, where VLLM_ENGINE_READY_TIMEOUT_S is not set. */
const readyTimeoutSeconds = 600;

export const readyTimeout: Rule = {
  id: 'ready-timeout',
  severity: 'refuse',
  reason: 'the engine would give up while the cutover still waits for it',
  evidence: `vLLM's VLLM_ENGINE_READY_TIMEOUT_S: the front waits ${readyTimeoutSeconds} s for the engine unless it is set`,
  remedy:
    'set VLLM_ENGINE_READY_TIMEOUT_S in slot:shape.environment to the seconds of slot:shape.deadlines.boot',
  examine: ({ release }) => {
    if (release.engineKind !== 'vllm') return undefined;
    const set = release.environment.VLLM_ENGINE_READY_TIMEOUT_S;
    const seconds = set === undefined ? readyTimeoutSeconds : /^\d+$/.test(set) ? Number(set) : 0;
    const budget = `the boot budget is ${release.deadlines.bootSeconds} s`;
    if (seconds >= release.deadlines.bootSeconds) return undefined;
    return set === undefined
      ? `no VLLM_ENGINE_READY_TIMEOUT_S, so ${readyTimeoutSeconds} s, and ${budget}`
      : `VLLM_ENGINE_READY_TIMEOUT_S=${set}, and ${budget}`;
  },
};

export const stopInOrder: Rule = {
  id: 'stop-in-order',
  severity: 'refuse',
  reason:
    'each waits for what it starts: podman for the container, systemd for podman, the cutover for systemd; one that ends first leaves a container behind',
  evidence:
    'runbook of the endpoint: the engine ignores SIGTERM for 20 minutes and longer; podman kills after 10 s unless it is told',
  remedy: 'podman rm --time < TimeoutStopSec < slot:shape.deadlines.stop, and KillMode=control-group',
  examine: ({ release }) => {
    const unit = unitTextOf(release);
    const killMode = unit.last('Service', 'KillMode');
    if (killMode === 'none' || killMode === 'process') return `KillMode=${killMode}`;
    const written = unit.last('Service', 'TimeoutStopSec') ?? unit.last('Service', 'TimeoutSec') ?? '90';
    const limit = secondsIn(written);
    const { stopSeconds } = release.deadlines;
    if (!(limit < stopSeconds)) return `TimeoutStopSec=${written}, and the cutover waits ${stopSeconds} s`;
    const slow = removalsIn(unit).find((seconds) => seconds >= limit);
    if (slow !== undefined) return `podman waits ${slow} s, and TimeoutStopSec=${written}`;
    const shutdown = vllmArguments(release)?.number('--shutdown-timeout') ?? 0;
    return shutdown >= limit ? `--shutdown-timeout ${shutdown}, and TimeoutStopSec=${written}` : undefined;
  },
};

/** Seconds that podman waits before it kills, of each stop and removal; its own default is 10. */
function removalsIn(unit: UnitText): readonly number[] {
  const lines = [...unit.commands('ExecStop'), ...unit.commands('ExecStopPost')];
  return lines.flatMap((words = []) =>
    [...words.join(' ').matchAll(/podman (?:rm|stop)\b([^;&|]*)/g)].map(([, options = '']) =>
      Number(/(?:--time|-t)[ =]?(\d+)/.exec(options)?.[1] ?? 10),
    ),
  );
}

const secondsPerUnit: Readonly<Record<string, number>> = {
  ms: 0.001,
  '': 1,
  s: 1,
  sec: 1,
  m: 60,
  min: 60,
  h: 3600,
};

/** A time span as systemd writes it, e.g. `1min 30s`; what cannot be read is taken for endless. */
function secondsIn(span: string): number {
  const parts = [...span.matchAll(/(\d+(?:\.\d+)?) ?([a-z]*)/g)].map(
    ([, amount, unit = '']) => Number(amount) * (secondsPerUnit[unit] ?? Number.POSITIVE_INFINITY),
  );
  if (span === '0' || parts.length === 0) return Number.POSITIVE_INFINITY;
  return parts.reduce((sum, part) => sum + part, 0);
}
