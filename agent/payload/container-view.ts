import { posix } from 'node:path';
import type { FileStatus, Outside } from '../outside.ts';

/** A folder or file of the host in the container. */
export interface MountedTree {
  readonly source: string;
  readonly target: string;
}

/** What the engine finds at a path. */
export type Found =
  /** Path on the host that has no link below the mount; the last link that led to it. */
  | {
      readonly kind: 'there';
      readonly path: string;
      readonly status: FileStatus;
      readonly link: string | undefined;
    }
  | { readonly kind: 'absent'; readonly link: string | undefined }
  | { readonly kind: 'loop'; readonly link: string }
  /** A link leads to where nothing is mounted. */
  | {
      readonly kind: 'unreachable';
      readonly link: string;
      readonly target: string;
      readonly onHost: boolean;
    };

/** As the kernel's own limit. */
const mostLinks = 40;

/**
 * Goes the path as the engine's process would, link by link: an absolute one leads through the container, not through
 * the host, and nothing that is not mounted is there.
 */
export async function findInContainer(
  outside: Outside,
  trees: readonly MountedTree[],
  path: string,
): Promise<Found> {
  let at = '';
  let rest = path.split('/');
  let link: string | undefined;
  for (let links = 0; rest.length > 0; ) {
    const [name = '', ...further] = rest;
    rest = further;
    const next = posix.join('/', at, name);
    const tree = treeOf(trees, next);
    // What is mounted may itself be a link on the host: podman has followed it.
    const leadsTo =
      tree === undefined || tree.target === next ? undefined : await outside.readLink(onHost(tree, next));
    if (leadsTo === undefined) {
      at = next;
      continue;
    }
    link = leadsTo;
    links += 1;
    if (links > mostLinks) return { kind: 'loop', link };
    if (leadsTo.startsWith('/')) at = '/';
    rest = [...leadsTo.split('/'), ...rest];
  }
  const tree = treeOf(trees, at);
  if (tree === undefined) {
    const origin = treeOf(trees, path);
    const status = origin && (await outside.statusOf(onHost(origin, path)).catch(() => undefined));
    return { kind: 'unreachable', link: link ?? '', target: at, onHost: status !== undefined };
  }
  const host = onHost(tree, at);
  const status = await outside.statusOf(host);
  return status === undefined ? { kind: 'absent', link } : { kind: 'there', path: host, status, link };
}

/** Of mounts inside each other the innermost counts. */
function treeOf(trees: readonly MountedTree[], path: string): MountedTree | undefined {
  return trees
    .filter(({ target }) => path === target || path.startsWith(target === '/' ? '/' : `${target}/`))
    .reduce<MountedTree | undefined>(
      (best, tree) => (best !== undefined && best.target.length >= tree.target.length ? best : tree),
      undefined,
    );
}

function onHost({ source, target }: MountedTree, path: string): string {
  return posix.join(source, path.slice(target === '/' ? 0 : target.length));
}
