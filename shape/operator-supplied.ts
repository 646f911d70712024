import type { Path } from './problems.ts';

/** What is known already of a configuration that is not yet valid. */
export interface Known {
  /** Stack of the file, e.g. `glm-w4a16`. */
  readonly stack: string;
  /** The value of `slot:host` or `slot:shape`, whatever it is. */
  readonly value: unknown;
}

/** A value that only the operator can give: how to find it, and how to set it. */
interface Source {
  find(known: Known): readonly string[];
  readonly example: string;
}

const hostSources: Readonly<Record<string, Source>> = {
  address: {
    find: ({ stack }) => [`ssh -G ${stack} | grep '^hostname '`],
    example: '<address>',
  },
  hostKey: {
    find: (known) => [keyScan(known, [])],
    example: "'ssh-ed25519 AAAA…'",
  },
  'jumpHost.address': { find: ({ stack }) => [`ssh -G ${stack} | grep '^proxyjump '`], example: '<address>' },
  'jumpHost.hostKey': {
    find: (known) => [keyScan(known, ['jumpHost'])],
    example: "'ssh-ed25519 AAAA…'",
  },
  gpus: {
    find: (known) => [`ssh ${login(known)} "lspci -D | grep -E 'VGA|Display'"`],
    example: '0000:03:00.0',
  },
};

const shapeSources: Readonly<Record<string, Source>> = {
  'engine.image.repository': {
    find: (known) => onHost(known, 'podman image ls --digests'),
    example: '<registry>/<name>',
  },
  'engine.image.digest': {
    find: (known) =>
      onHost(
        known,
        `podman image ls --digests ${textAt(known, ['engine', 'image', 'repository']) ?? ''}`.trim(),
      ),
    example: 'sha256:…',
  },
  'engine.arguments': {
    find: (known) => onHost(known, "podman inspect --format '{{json .Args}}' <container>"),
    example: '<argument>',
  },
  'payload.folder': {
    find: (known) => [`ssh ${hostOf(known)} ls -l /home/dank/models`],
    example: '<folder>',
  },
};

/** The commands that find and set the value at this key; undefined: nothing special is known about it. */
export function howToSupply(kind: 'host' | 'shape', path: Path, known: Known): string | undefined {
  const key = path.join('.');
  const source = (kind === 'host' ? hostSources : shapeSources)[key];
  if (source === undefined) return undefined;
  const element = key === 'gpus' || key === 'engine.arguments' ? '[0]' : '';
  return [
    ...source.find(known).map((command) => `find it: ${command}`),
    `set it:  pulumi config set --path 'slot:${kind}.${key}${element}' ${source.example} -s ${known.stack}`,
  ].join('\n');
}

/** The values below this key that only the operator can give. */
export function suppliedBelow(kind: 'host' | 'shape', path: Path): readonly Path[] {
  return Object.keys(kind === 'host' ? hostSources : shapeSources)
    .map((key) => key.split('.'))
    .filter((key) => key.length > path.length && path.every((part, index) => part === key[index]));
}

/** Root's images and containers are not the login's: which of the two has it must be looked up. */
function onHost(known: Known, command: string): readonly string[] {
  const host = hostOf(known);
  return [`ssh ${host} ${quoted(`sudo ${command}`)}`, `ssh ${host} ${quoted(command)}`];
}

function quoted(command: string): string {
  return command.includes("'") ? `"${command}"` : `'${command}'`;
}

function hostOf(known: Known): string {
  return textAt(known, ['host']) ?? '<host>';
}

function keyScan(known: Known, path: Path): string {
  const port = at(known.value, [...path, 'sshPort']);
  const option = typeof port === 'number' && port !== 22 ? `-p ${port} ` : '';
  return `ssh-keyscan -t ed25519 ${option}${textAt(known, [...path, 'address']) ?? '<address>'}`;
}

function login(known: Known): string {
  return `${textAt(known, ['user']) ?? 'dank'}@${textAt(known, ['address']) ?? '<address>'}`;
}

function textAt(known: Known, path: Path): string | undefined {
  const found = at(known.value, path);
  return typeof found === 'string' ? found : undefined;
}

/** The value at a path below any value; undefined where there is none. */
export function at(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (inner, part) =>
      inner !== null && typeof inner === 'object' && Object.hasOwn(inner, part)
        ? (inner as Record<PropertyKey, unknown>)[part]
        : undefined,
    value,
  );
}
