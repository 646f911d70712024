import { unitTextOf } from '../unit-text.ts';
import type { Rule } from './rule.ts';

export const wordsSurvive: Rule = {
  id: 'words-survive',
  severity: 'refuse',
  reason:
    'what the engine gets is what the shape says, byte for byte: JSON with blanks, quotes, % and $ included',
  evidence:
    'runbook of the endpoint; systemd 252 drops inner quotes, expands % and $ and splits at ; (measured)',
  remedy: 'render the unit by its template, which encodes each word',
  examine: ({ release }) => {
    const unit = unitTextOf(release);
    if (unit.fault !== undefined) return unit.fault;
    const { container } = unit;
    if (container === undefined) return 'ExecStart is no podman run';
    const unread = container.options.find((option) => /^-[^-]|^--env-/.test(option));
    if (unread !== undefined) return `${unread} gives the engine what no other rule reads`;
    const environment = Object.entries(release.environment).map(([name, value]) => `${name}=${value}`);
    const secrets = release.secrets.map(({ variable, name }) => `${name},type=env,target=${variable}`);
    return (
      difference('image', [container.image], [release.image]) ??
      difference('argument', container.arguments, release.arguments) ??
      difference('--env', sorted(container.values('--env')), sorted(environment)) ??
      difference('--secret', sorted(container.values('--secret')), sorted(secrets))
    );
  },
};

function difference(what: string, found: readonly string[], wanted: readonly string[]): string | undefined {
  const length = Math.max(found.length, wanted.length);
  const index = Array.from({ length }, (_, at) => at).find((at) => found[at] !== wanted[at]);
  if (index === undefined) return undefined;
  const said = (words: readonly string[]): string => JSON.stringify(words[index]) ?? 'absent';
  return `${what} ${index + 1} is ${said(found)} in the unit, ${said(wanted)} in the shape`;
}

function sorted(words: readonly string[]): readonly string[] {
  return [...words].sort();
}

export const hostIpcWithoutSize: Rule = {
  id: 'host-ipc-without-size',
  severity: 'refuse',
  reason: "the host's /dev/shm has its own size: podman refuses to set one",
  evidence: "podman's documentation of --shm-size",
  remedy: 'keep one of the two',
  examine: ({ release }) => {
    const container = unitTextOf(release).container;
    const [size] = container?.values('--shm-size') ?? [];
    return size !== undefined && container?.values('--ipc').includes('host')
      ? `--ipc=host and --shm-size=${size}`
      : undefined;
  },
};

export const selinuxLabel: Rule = {
  id: 'selinux-label',
  severity: 'refuse',
  reason: 'SELinux keeps the engine from a payload whose files are not relabelled',
  evidence: "podman's documentation of --security-opt label",
  remedy: 'add label=disable to slot:host.securityOptions; the unit shows it',
  examine: ({ release }) => {
    if (release.review?.selinux !== 'enforcing') return undefined;
    const options = unitTextOf(release).container?.values('--security-opt') ?? [];
    // podman takes the colon of old docker as well.
    return options.some((option) => /^label[=:]disable$/.test(option))
      ? undefined
      : 'SELinux enforces, and no --security-opt=label=disable';
  },
};
