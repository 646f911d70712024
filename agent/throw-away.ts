import type { CommandResult, Outside } from './outside.ts';

/** Bounds of a throw-away container: it parses arguments and reads files beside an engine that serves. */
const memoryBytes = 8 * 1024 ** 3;
const limitSeconds = 300;

/** By which one is known. */
const label = 'slot.throw-away';

export interface ThrowAway {
  readonly image: string;
  readonly entrypoint: string;
  readonly arguments: readonly string[];
  /** Further ones of `podman run`, e.g. `--volume=…`; default none. */
  readonly options?: readonly string[];
  /** Value of systemd's LimitMEMLOCK; default: systemd's own. */
  readonly memlock?: string;
}

/**
 * Runs a program of the image in a container without GPUs and network, under the limits of a unit as the engine's
 * are. The cgroup is the transient unit's: podman's own `--memory` wants a swap controller that
 * not every kernel has.
 */
export function runThrowAway(outside: Outside, container: ThrowAway): Promise<CommandResult> {
  const memlock = container.memlock === undefined ? [] : [`--property=LimitMEMLOCK=${container.memlock}`];
  return outside.run(
    'systemd-run',
    [
      ...['--quiet', '--pipe', '--wait', '--collect', '--property=Delegate=yes'],
      ...[`--property=MemoryMax=${memoryBytes}`, `--property=RuntimeMaxSec=${limitSeconds}`, ...memlock],
      ...[
        'podman',
        'run',
        '--rm',
        `--label=${label}`,
        '--pull=never',
        '--network=none',
        '--cgroups=split',
        '--ulimit=host',
      ],
      ...(container.options ?? []).map(literal),
      ...[`--entrypoint=${container.entrypoint}`, container.image, ...container.arguments.map(literal)],
    ],
    { timeoutSeconds: limitSeconds + 30 },
  );
}

/**
 * Removes what a power cut left: podman's record of a container outlives the unit that would have removed it. One that
 * runs, or is just being made by somebody else, stays.
 */
export async function removeStaleThrowAways(outside: Outside): Promise<void> {
  const filters = [`--filter=label=${label}`, '--filter=until=10s'];
  await outside.run('podman', ['container', 'prune', '--force', ...filters]);
}

/** systemd fills in variables in the words of a transient unit too. */
function literal(word: string): string {
  return word.replaceAll('$', '$$$$');
}
