import type { Release } from '../release.ts';
import { unitTextOf } from '../unit-text.ts';
import type { Rule } from './rule.ts';

export interface Mount {
  readonly written: string;
  readonly source: string;
  readonly target: string;
  readonly options: readonly string[];
}

/** Of `--volume=source:target:options` and `--mount=key=value,…`, as podman takes them. */
export function mountsOf(release: Release): readonly Mount[] {
  const container = unitTextOf(release).container;
  const volumes = (container?.values('--volume') ?? []).map((written): Mount => {
    const [source = '', target = '', options = ''] = written.split(':');
    return { written, source, target, options: options.split(',') };
  });
  const mounts = (container?.values('--mount') ?? []).map((written): Mount => {
    const options = written.split(',');
    const value = (...keys: string[]): string =>
      options.find((option) => keys.includes(option.split('=')[0] ?? ''))?.split('=')[1] ?? '';
    return {
      written,
      source: value('source', 'src'),
      target: value('target', 'destination', 'dst'),
      options,
    };
  });
  return [...volumes, ...mounts];
}

const isReadOnly = ({ options }: Mount): boolean =>
  options.some((option) => /^(?:ro|readonly|ro=true|readonly=true)$/.test(option)) && !options.includes('rw');

export const mountsNotRelabelled: Rule = {
  id: 'mounts-not-relabelled',
  severity: 'refuse',
  reason: 'podman would write a label to every file of the payload, and other programs of the host lose them',
  evidence: "podman's documentation of --volume; docs/architecture.md: a payload is never written",
  remedy:
    'mount without z and Z; on a host where SELinux enforces, set label=disable in slot:host.securityOptions',
  examine: ({ release }) =>
    mountsOf(release).find(({ options }) => options.some((option) => /^(?:z|relabel=.*)$/i.test(option)))
      ?.written,
};

export const mountsReadOnly: Rule = {
  id: 'mounts-read-only',
  severity: 'refuse',
  reason: 'payloads and patched files are never written: releases to come back to refer to them',
  evidence:
    'runbook of the endpoint: a payload is verified, mounted read-only, never written and never deleted',
  remedy: 'mount it read-only, or name it in slot:shape.state if the engine must write there',
  examine: ({ release }) =>
    mountsOf(release).find((mount) => !isReadOnly(mount) && !isState(mount, release))?.written,
};

/** A state folder around or inside the payload would make the payload writable. */
function isState({ source }: Mount, { stateFolders, payload }: Release): boolean {
  return (
    stateFolders.includes(source) && !isWithin(payload.folder, source) && !isWithin(source, payload.folder)
  );
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

/** Python runs these in every interpreter that finds them. */
const hook = /\/(?:site|user)customize(?:\.py|\/)?$|\/(?:site|user)customize\/__init__\.py$|\.pth$/;

export const guardedImportHook: Rule = {
  id: 'guarded-import-hook',
  severity: 'refuse',
  reason:
    'every Python interpreter imports it, also those that it starts itself: without a guard variable it is a fork bomb',
  evidence: 'runbook of the endpoint',
  remedy:
    'let the hook set a variable and do nothing where it is set already, and name that variable in slot:shape.importGuard',
  examine: ({ release }) => {
    if (release.review?.importGuard !== undefined) return undefined;
    const searched = (release.environment.PYTHONPATH ?? '')
      .split(':')
      .filter((folder) => folder.startsWith('/'));
    const found = mountsOf(release).find(
      ({ target }) => hook.test(target) || searched.some((folder) => isWithin(folder, target)),
    );
    if (found === undefined) return undefined;
    return hook.test(found.target) ? found.written : `${found.written} on PYTHONPATH, which may hold one`;
  },
};
