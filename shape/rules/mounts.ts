import { posix } from 'node:path';
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

/** A path in the one form that all its spellings have: `/a//b/./` is `/a/b`. */
export function normalPath(path: string): string {
  return posix.resolve('/', path);
}

/** Where a path of the container lies on the host; undefined: in no mount. */
export function hostPathOf(release: Release, path: string): string | undefined {
  if (!path.startsWith('/')) return undefined;
  const around = mountsOf(release)
    .filter(({ target }) => isWithin(path, target))
    .sort((a, b) => normalPath(b.target).length - normalPath(a.target).length)[0];
  return (
    around &&
    posix.join(normalPath(around.source), posix.relative(normalPath(around.target), normalPath(path)))
  );
}

/** Whether a path is the folder or lies in it, however they are spelled. */
export function isWithin(path: string, folder: string): boolean {
  const [inner, outer] = [normalPath(path), normalPath(folder)];
  return inner === outer || inner.startsWith(outer === '/' ? outer : `${outer}/`);
}

function overlap(a: string, b: string): boolean {
  return isWithin(a, b) || isWithin(b, a);
}

function isReadOnly({ options }: Mount): boolean {
  return (
    options.some((option) => /^(?:ro|readonly|ro=true|readonly=true)$/.test(option)) &&
    !options.includes('rw')
  );
}

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

/** A state folder around or inside of what is read-only would make that writable. */
function isState({ source }: Mount, release: Release): boolean {
  const { stateFolders, payload } = release;
  const kept = [
    payload.folder,
    ...mountsOf(release)
      .filter(isReadOnly)
      .map((mount) => mount.source),
  ];
  return (
    stateFolders.some((folder) => normalPath(folder) === normalPath(source)) &&
    !kept.some((folder) => overlap(folder, source))
  );
}

export const stateApartFromModels: Rule = {
  id: 'state-apart-from-models',
  severity: 'refuse',
  reason: 'what lies among the models is the payload of some shape, and no payload is ever written',
  evidence:
    'runbook of the endpoint: a payload is verified, mounted read-only, never written and never deleted',
  remedy: 'name a folder of slot:shape.state that is neither below nor around slot:host.modelsRoot',
  examine: ({ release }) => {
    const root = release.review?.modelsRoot;
    if (root === undefined) return undefined;
    const found = mountsOf(release).find((mount) => !isReadOnly(mount) && overlap(mount.source, root));
    return found && `${found.written}, and the models lie in ${root}`;
  },
};

/** Over these a container cannot be mounted, or has nothing left to run. */
const systemFolders =
  /^\/(?:|(?:bin|boot|dev|etc|lib|lib32|lib64|proc|root|run|sbin|sys|usr|var|opt)|usr\/(?:s?bin|lib(?:32|64)?|local)|(?:proc|sys)\/.*|dev\/(?!shm$).*)$/;

export const mountTargets: Rule = {
  id: 'mount-targets',
  severity: 'refuse',
  reason:
    'of two mounts at one place only one is seen, and a mount over the system of the image takes away what starts the engine',
  evidence: "podman's documentation of --volume; it refuses two of one target when the old engine is gone",
  remedy: 'choose a target of its own for each mount, e.g. /draft',
  examine: ({ release }) => {
    const mounts = mountsOf(release);
    const over = mounts.find(({ target }) => systemFolders.test(normalPath(target)));
    if (over !== undefined) return `${over.written}, over ${normalPath(over.target)} of the image`;
    const targets = mounts.map(({ target }) => normalPath(target));
    const second = mounts.find((_mount, index) => targets.indexOf(targets[index] ?? '') !== index);
    return second && `${second.written}, where something is mounted already`;
  },
};

/** Python imports these in every interpreter that finds them, as source, byte code, library or package. */
const hook = /(?:^|\/)(?:site|user)customize(?:\.[^/]*)?(?:\/|$)/;

/** Folders whose `.pth` files Python carries out at its start; elsewhere such a file may be weights. */
const packages = /(?:^|\/)(?:site|dist)-packages$/;

/** Folders that hold the ones of all packages. */
const aroundPackages =
  /^\/(?:root(?:\/\.local)?|opt|(?:usr|usr\/local|root\/\.local|opt\/(?:venv|conda))(?:\/lib(?:\/python[\d.]*)?)?)$/;

/** Variables that say where Python looks for what it imports at its start. */
const searchedBy = ['PYTHONPATH', 'PYTHONHOME', 'PYTHONUSERBASE'] as const;

export const guardedImportHook: Rule = {
  id: 'guarded-import-hook',
  severity: 'refuse',
  reason:
    'every Python interpreter imports it, also those that it starts itself: without a guard variable it is a fork bomb',
  evidence: 'runbook of the endpoint',
  remedy:
    'let the hook set a variable and do nothing where it is set already, and name that variable in slot:shape.importGuard',
  examine: ({ release }) => {
    const { review, environment, secrets } = release;
    if (review?.importGuard !== undefined) return undefined;
    const hidden = searchedBy.find((name) => secrets.some(({ variable }) => variable === name));
    if (hidden !== undefined) return `${hidden} is a secret, so nobody sees what it puts on the path`;
    const mounts = mountsOf(release);
    const found = mounts.find(({ target }) => isHook(normalPath(target)));
    if (found !== undefined) return found.written;
    for (const name of searchedBy) {
      const path = environment[name];
      const onPath = path && mounts.find((mount) => mayBeSearched(mount, name, path.split(':'), release));
      if (onPath) return `${onPath.written} on ${name}, which may hold one`;
    }
    return undefined;
  },
};

function isHook(target: string): boolean {
  return (
    hook.test(target) ||
    packages.test(target) ||
    aroundPackages.test(target) ||
    (target.endsWith('.pth') && packages.test(posix.dirname(target)))
  );
}

function mayBeSearched(
  { source, target }: Mount,
  name: (typeof searchedBy)[number],
  entries: readonly string[],
  { mounts = [] }: Release,
): boolean {
  const isOfShape = mounts.some((mount) => normalPath(mount.source) === normalPath(source));
  return entries.some(
    (entry) =>
      isWithin(entry, target) ||
      // The packages lie below these, not in them.
      (name !== 'PYTHONPATH' && isWithin(target, entry)) ||
      // One that is empty or relative begins in a folder that nobody here knows.
      (isOfShape && !entry.startsWith('/')),
  );
}
