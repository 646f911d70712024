import { posix } from 'node:path';
import type { HostConfig } from './host.ts';
import { namesOf } from './names.ts';
import type { PatchedFile } from './patches.ts';
import type { PayloadExpectation } from './payload-expectation.ts';
import type { Problem } from './problems.ts';
import type { ShapeConfig } from './shape.ts';

/** A folder or file of the host in the container. */
export interface Volume {
  readonly source: string;
  readonly target: string;
  readonly access: 'ro' | 'rw';
}

export interface Volumes {
  readonly payload: Volume;
  /** By the names that the shape gives them. */
  readonly state: Readonly<Record<string, Volume>>;
  /** With what the shape expects of them. */
  readonly mounts: readonly (Volume & { readonly expected: PayloadExpectation | undefined })[];
  /** In the order in which podman gets them. */
  readonly all: readonly Volume[];
  readonly problems: readonly Problem[];
}

/** Where payload, state, further mounts and patched files lie on the host and in the container. */
export function volumesOf(
  host: HostConfig,
  shape: ShapeConfig,
  patchedFiles: readonly PatchedFile[],
  file: string,
): Volumes {
  const payload: Volume = {
    source: posix.resolve(host.modelsRoot, shape.payload.folder),
    target: '/model',
    access: 'ro',
  };
  const [stateRoot = '/'] = host.stateRoots;
  const state = Object.fromEntries(
    Object.entries(shape.state).map(([name, folder]): [string, Volume] => [
      name,
      { source: posix.resolve(stateRoot, folder), target: `/state/${name}`, access: 'rw' },
    ]),
  );
  const mounts = shape.mounts.map(({ source, target, expected }) => ({
    source: posix.resolve(host.modelsRoot, source),
    target,
    access: 'ro' as const,
    expected,
  }));
  const patched = patchedFiles.map(
    ({ target, patchedSha256 }): Volume => ({
      source: namesOf(host.service).patchedFile(patchedSha256, target),
      target,
      access: 'ro',
    }),
  );
  const all = [payload, ...Object.values(state), ...mounts, ...patched];
  return {
    payload,
    state,
    mounts,
    all,
    problems: [...strayState(host, state, file), ...sharedTargets(all, file)],
  };
}

function strayState(host: HostConfig, state: Volumes['state'], file: string): readonly Problem[] {
  return Object.entries(state)
    .filter(([, { source }]) => !host.stateRoots.some((root) => source.startsWith(`${posix.resolve(root)}/`)))
    .map(([name, { source }]) => ({
      file,
      key: `slot:shape.state.${name}`,
      value: source,
      limit: `must lie below a state root of ${host.name}: ${host.stateRoots.join(', ') || 'it declares none'}`,
      remedy: `name a folder below one, or add its root to slot:host.stateRoots of ${host.name}`,
    }));
}

function sharedTargets(all: readonly Volume[], file: string): readonly Problem[] {
  return all
    .filter(({ target }, index) => all.findIndex((other) => other.target === target) !== index)
    .map(({ source, target }) => ({
      file,
      key: 'slot:shape.mounts',
      value: source,
      limit: `must not be mounted at ${target}, where something is mounted already`,
      remedy: 'choose another target',
    }));
}
