import * as z from 'zod';
import { identityLabel } from '../shape/names.ts';
import type { Outside } from './outside.ts';

const containerSchema = z.object({
  Id: z.string(),
  State: z.object({ Status: z.string(), Pid: z.int() }),
  Config: z.object({
    Cmd: z.array(z.string()).nullish(),
    Env: z.array(z.string()).nullish(),
    Labels: z.record(z.string(), z.string()).nullish(),
  }),
});
export type Container = z.infer<typeof containerSchema>;

/** One container of root's store; `undefined` when there is none of that name. */
export async function inspectContainer(outside: Outside, name: string): Promise<Container | undefined> {
  const result = await outside.run('podman', ['container', 'inspect', name]);
  if (result.exitCode !== 0) {
    if (/no such container|no container with/i.test(result.stderr)) return undefined;
    throw new Error(`podman container inspect ${name}: ${result.stderr.trim()}`);
  }
  return z.array(containerSchema).parse(JSON.parse(result.stdout))[0];
}

const listedSchema = z.array(
  z.object({
    Names: z.array(z.string()),
    State: z.string(),
    Labels: z.record(z.string(), z.string()).nullish(),
  }),
);

export interface ListedContainer {
  readonly name: string;
  /** As podman says it, e.g. `running`. */
  readonly state: string;
  /** Engine identity that it is marked with; undefined: not one of ours. */
  readonly identity: string | undefined;
}

/** All containers whose name begins with the given text, by one question: each costs 50 ms of podman's start. */
export async function containersBeginningWith(outside: Outside, prefix: string): Promise<ListedContainer[]> {
  const result = await outside.run('podman', ['ps', '--all', '--format=json', `--filter=name=^${prefix}`]);
  if (result.exitCode !== 0) throw new Error(`podman ps: ${result.stderr.trim()}`);
  return listedSchema.parse(JSON.parse(result.stdout)).map(({ Names, State, Labels }) => ({
    name: Names.join(', '),
    state: State,
    identity: Labels?.[identityLabel],
  }));
}

/**
 * Whether exactly the pinned reference is there. An image can carry several digests, so its own idea of
 * "the" digest is not asked.
 */
export async function imageState(
  outside: Outside,
  reference: string,
): Promise<'present' | 'under another digest' | 'absent'> {
  const { exitCode, stderr } = await outside.run('podman', ['image', 'exists', reference]);
  if (exitCode === 0) return 'present';
  if (exitCode !== 1) throw new Error(`podman image exists ${reference}: ${stderr.trim()}`);
  const repository = reference.slice(0, reference.indexOf('@'));
  const listed = await outside.run('podman', ['image', 'ls', '--quiet', repository]);
  return listed.stdout.trim() === '' ? 'absent' : 'under another digest';
}

/** Program and first words of an image that is there; none where it has no entrypoint. */
export async function imageEntrypoint(outside: Outside, reference: string): Promise<string[]> {
  const format = '{{json .Config.Entrypoint}}';
  const { exitCode, stdout, stderr } = await outside.run('podman', [
    ...['image', 'inspect', '--format', format, reference],
  ]);
  if (exitCode !== 0) throw new Error(`podman image inspect ${reference}: ${stderr.trim()}`);
  return z.array(z.string()).nullable().parse(JSON.parse(stdout)) ?? [];
}

export async function hasSecret(outside: Outside, name: string): Promise<boolean> {
  return (await outside.run('podman', ['secret', 'inspect', name])).exitCode === 0;
}

/** The value travels on standard input alone: neither arguments nor messages have it. */
export async function putSecret(outside: Outside, name: string, value: string): Promise<void> {
  if (await hasSecret(outside, name)) await outside.run('podman', ['secret', 'rm', name]);
  // podman 5.4 takes a pipe there and refuses a socket, which is what Node gives a child.
  const create = 'cat | podman secret create "$1" -';
  const created = await outside.run('sh', ['-c', create, 'sh', name], { input: value });
  if (created.exitCode !== 0) throw new Error(`podman secret create ${name}: exit ${created.exitCode}`);
}
