import type { Path } from './problems.ts';

/** What a file describes: the value of `slot:host` or `slot:shape` of a stack file, or as a whole a model or an image. */
export type FileKind = 'host' | 'shape' | 'model' | 'image';

/** What is known already of a configuration that is not yet valid. */
export interface Known {
  /** E.g. `Pulumi.glm-w4a16.yaml`. */
  readonly file: string;
  /** The value of `slot:host` or `slot:shape`, whatever it is. */
  readonly value: unknown;
  /** Words after `ssh` that reach the shape's host, e.g. `dank@192.0.2.7`; undefined: its file does not say. */
  readonly login?: string | undefined;
}

/** A value that only the operator can give: how to find it, and how to set it. */
interface Source {
  find(known: Known): readonly string[];
  readonly example: string;
  /** Stands for the value in a draft: nobody could take it for a real one. */
  placeholder(known: Known): unknown;
  /** Whether this configuration has the key at all; default: it has. */
  applies?(known: Known): boolean;
}

const placeholderAddress = 'operator-supplied.invalid';

/** A well-formed ed25519 key of zeros. */
const placeholderHostKey = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}`;

const hasJumpHost = ({ value }: Known): boolean => at(value, ['jumpHost']) !== undefined;

const hostSources: Readonly<Record<string, Source>> = {
  address: {
    find: ({ file }) => [`ssh -G ${stackOf(file)} | grep '^hostname '`],
    example: '<address>',
    placeholder: () => placeholderAddress,
  },
  hostKey: {
    find: (known) => [keyScan(known, [])],
    example: "'ssh-ed25519 AAAA…'",
    placeholder: () => placeholderHostKey,
  },
  'jumpHost.address': {
    find: ({ file }) => [`ssh -G ${stackOf(file)} | grep '^proxyjump '`],
    example: '<address>',
    placeholder: () => placeholderAddress,
    applies: hasJumpHost,
  },
  'jumpHost.hostKey': {
    find: (known) => [keyScan(known, ['jumpHost'])],
    example: "'ssh-ed25519 AAAA…'",
    placeholder: () => placeholderHostKey,
    applies: hasJumpHost,
  },
  gpus: {
    find: ({ value }) => [`ssh ${loginTo(value) ?? 'dank@<address>'} "lspci -D | grep -E 'VGA|Display'"`],
    example: '0000:03:00.0',
    placeholder: () => [],
  },
};

const shapeSources: Readonly<Record<string, Source>> = {
  'engine.image.repository': {
    find: (known) => onHost(known, 'podman image ls --digests'),
    example: '<registry>/<name>',
    placeholder: () => 'operator-supplied.invalid/image',
  },
  'engine.image.digest': {
    find: (known) =>
      onHost(
        known,
        `podman image ls --digests ${textAt(known, ['engine', 'image', 'repository']) ?? ''}`.trim(),
      ),
    example: 'sha256:…',
    placeholder: (known) =>
      `sha256:${(textAt(known, ['engine', 'image', 'recordedPrefix']) ?? '').padEnd(64, '0')}`,
  },
  'engine.arguments': {
    find: (known) => onHost(known, "podman inspect --format '{{json .Args}}' <container>"),
    example: '<argument>',
    placeholder: () => [
      ...['--model', '{payload}', '--host', '0.0.0.0', '--port', '{port}'],
      ...['--alias', '{servedNames}'],
    ],
    applies: ({ value }) => at(value, ['engine', 'kind']) === 'r9v',
  },
  'payload.folder': {
    find: (known) => [`ssh ${hostOf(known)} ls -l /home/dank/models`],
    example: '<folder>',
    placeholder: () => 'operator-supplied',
  },
};

const sourcesOf: Readonly<Record<FileKind, Readonly<Record<string, Source>>>> = {
  host: hostSources,
  shape: shapeSources,
  model: {},
  image: {},
};

/** The commands that find and set the value at this key; undefined: nothing special is known about it. */
export function howToSupply(kind: FileKind, path: Path, known: Known): string | undefined {
  const key = path.join('.');
  const source = new Map(Object.entries(sourcesOf[kind])).get(key);
  if (source === undefined) return undefined;
  const element = key === 'gpus' || key === 'engine.arguments' ? '[0]' : '';
  return [
    ...source.find(known).map((command) => `find it: ${command}`),
    `set it:  pulumi config set --path 'slot:${kind}.${key}${element}' ${source.example} ${optionsFor(known.file)}`,
  ].join('\n');
}

/** What stands for the name of a file that is not known: Pulumi does not say what `--config-file` it was given. */
export function unknownFile(stack: string): string {
  return `--config-file in place of Pulumi.${stack}.yaml`;
}

/** Options by which `pulumi config set` writes into this file. */
export function optionsFor(file: string): string {
  const stack = `-s ${stackOf(file)}`;
  if (file.startsWith('--config-file')) return `${stack} --config-file <file>`;
  return /(?:^|[\\/])experiments[\\/]/.test(file) ? `${stack} --config-file ${file}` : stack;
}

/** The stack of a file that is named as Pulumi names it; `<stack>` of another. */
export function stackOf(file: string): string {
  return /(?:^|[\\/ ])Pulumi\.([^\\/]+)\.ya?ml$/.exec(file)?.[1] ?? '<stack>';
}

/** Keys whose values only the operator can give, e.g. `engine.image.digest`. */
export function suppliedKeys(kind: FileKind): readonly string[] {
  return Object.keys(sourcesOf[kind]);
}

/** The values below this key that only the operator can give. */
export function suppliedBelow(kind: FileKind, path: Path): readonly Path[] {
  return Object.keys(sourcesOf[kind])
    .map((key) => key.split('.'))
    .filter((key) => key.length > path.length && path.every((part, index) => part === key[index]));
}

/** A value that is missing, with what stands for it in a draft. */
export interface Placeholder {
  readonly path: Path;
  readonly value: unknown;
}

/** What only the operator can give and has not given yet. */
export function placeholdersFor(kind: FileKind, known: Known): readonly Placeholder[] {
  return Object.entries(sourcesOf[kind])
    .map(([key, source]) => ({ path: key.split('.'), source }))
    .filter(
      ({ path, source }) => (at(known.value, path) ?? null) === null && (source.applies?.(known) ?? true),
    )
    .map(({ path, source }) => ({ path, value: source.placeholder(known) }));
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
  return known.login ?? textAt(known, ['host']) ?? '<host>';
}

function keyScan(known: Known, path: Path): string {
  const port = at(known.value, [...path, 'sshPort']);
  const option = typeof port === 'number' && port !== 22 ? `-p ${port} ` : '';
  return `ssh-keyscan -t ed25519 ${option}${textAt(known, [...path, 'address']) ?? '<address>'}`;
}

/** Words after `ssh` that reach a host by the value of its `slot:host`; undefined: it has no address yet. */
export function loginTo(value: unknown): string | undefined {
  const jump = endpoint(value, ['jumpHost']);
  const { address, user, port } = endpoint(value, []);
  if (address === undefined) return undefined;
  return [
    ...(jump.address === undefined ? [] : [`-J ${jump.user}@${jump.address}:${jump.port}`]),
    ...(port === 22 ? [] : [`-p ${port}`]),
    `${user}@${address}`,
  ].join(' ');
}

function endpoint(value: unknown, path: Path) {
  const address = at(value, [...path, 'address']);
  const user = at(value, [...path, 'user']);
  const port = at(value, [...path, 'sshPort']);
  return {
    address: typeof address === 'string' ? address : undefined,
    user: typeof user === 'string' ? user : 'dank',
    port: typeof port === 'number' ? port : 22,
  };
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
