import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { payloadManifests } from '../components/payload-manifests.ts';
import { shapeWithHost } from '../components/planned-shape.ts';
import { replaceText } from '../components/project-files.ts';
import { type RunResult, SshFailure } from '../remote/ssh.ts';
import { ConfigurationError } from '../shape/configuration.ts';
import type { HostConfig } from '../shape/host.ts';
import { expectedPayload } from '../shape/payload-expectation.ts';
import { manifestFile, manifestIdOf, manifestText, type PayloadManifest } from '../shape/payload-manifest.ts';
import { type PayloadRequest, type SealedTree, sealedPayloadsSchema } from '../shape/payload-request.ts';
import { shortId } from '../shape/release.ts';
import { volumesOf } from '../shape/volumes.ts';
import { askHost } from './host-program.ts';
import { hubFilesAt } from './hub-metadata.ts';
import { UsageError } from './usage.ts';

/** A cold disk of 100 MB/s gives 170 GiB in half an hour. */
const readingSeconds = 6 * 3600;

/** Has the host read a shape's payload and writes its manifest to `payloads/`. */
export async function seal(folder: string, stack: string): Promise<number> {
  return write(payloadOf(folder, stack));
}

/** The same with what a hub says of the files: those for which it has a hash are not read, but must be there. */
export async function importSeal(folder: string, stack: string, path: string): Promise<number> {
  const hub = hubFilesAt(path);
  const { trees, ...payload } = payloadOf(folder, stack);
  // What is mounted beside the payload is another repository of the hub.
  return write({ ...payload, trees: trees.slice(0, 1).map((own) => ({ ...own, hub: [...hub] })) });
}

/** Has the host compare a shape's payload with its manifest, and with what is on record of it. */
export async function verify(folder: string, stack: string): Promise<number> {
  const { host, trees } = payloadOf(folder, stack);
  for (const { root, manifest, expected } of trees) {
    const isRecorded = Object.values(expected?.files ?? {}).some(({ sha256 }) => sha256 !== undefined);
    if (manifest === undefined && !isRecorded) {
      throw new UsageError(`there is no ${manifestFile(root)}: npx slot payload seal ${stack}`);
    }
  }
  return (await ask(host, 'verify', trees)).exitCode;
}

interface ShapePayload {
  readonly host: HostConfig;
  /** Where the host's file lies. */
  readonly hostsFolder: string;
  /** The payload's first. */
  readonly trees: readonly SealedTree[];
}

/** A shape's payload, also of one that the operator has not completed elsewhere. */
function payloadOf(folder: string, stack: string): ShapePayload {
  const { file, shape, hostsFolder, host, missing, unreachable } = shapeWithHost(folder, stack);
  const unknown = [
    ...unreachable,
    ...missing.filter(({ key }) => /^slot:shape\.(?:payload|mounts)\b/.test(key)),
  ];
  if (unknown.length > 0) throw new ConfigurationError(unknown);
  const { payload, mounts, problems } = volumesOf(host, shape, [], file);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const manifests = payloadManifests(hostsFolder);
  const tree = (root: string, expected: typeof shape.payload.expected): SealedTree => {
    const manifest = manifests.get(manifestFile(root));
    return { root, ...(manifest && { manifest }), ...(expected && { expected: expectedPayload(expected) }) };
  };
  return {
    host,
    hostsFolder,
    trees: [
      tree(payload.source, shape.payload.expected),
      ...mounts.map(({ source, expected }) => tree(source, expected)),
    ],
  };
}

async function write({ host, hostsFolder, trees }: ShapePayload): Promise<number> {
  const before = new Map(trees.map(({ root, manifest }) => [manifestFile(root), manifest]));
  const files = trees.map(({ root }) => manifestFile(root));
  const twice = files.find((file, index) => files.indexOf(file) !== index);
  if (twice !== undefined) throw new UsageError(`two folders of the shape would be sealed in ${twice}`);
  const { exitCode, stdout } = await ask(host, 'seal', trees);
  if (exitCode !== 0) {
    process.stderr.write('nothing was written\n');
    return exitCode;
  }
  for (const { root, manifest } of sealedPayloadsSchema.parse(JSON.parse(stdout))) {
    const file = manifestFile(root);
    const path = join(hostsFolder, file);
    const text = manifestText(manifest);
    const isSame = existsSync(path) && readFileSync(path, 'utf8') === text;
    if (!isSame) replaceText(path, text);
    const told = `${manifest.length} files, manifest ${shortId(manifestIdOf(manifest))}`;
    process.stdout.write(`${file}${isSame ? ' says so already' : ''}: ${told}\n`);
    for (const line of changesSince(before.get(file) ?? manifest, manifest)) {
      process.stdout.write(`  ${line}\n`);
    }
  }
  process.stdout.write(
    'A seal says what lies there, not that it is a whole model: slot preflight looks at that.\n',
  );
  return 0;
}

/** What another seal of the same name said otherwise. */
function changesSince(before: PayloadManifest, now: PayloadManifest): readonly string[] {
  const hashesOf = (manifest: PayloadManifest) => new Map(manifest.map(({ name, sha256 }) => [name, sha256]));
  const [old, present] = [hashesOf(before), hashesOf(now)];
  return [...new Set([...old.keys(), ...present.keys()])].flatMap((name) => {
    if (old.get(name) === present.get(name)) return [];
    if (!present.has(name)) return [`no more there: ${name}`];
    return [`${old.has(name) ? 'other bytes than at the last seal' : 'new'}: ${name}`];
  });
}

async function ask(
  host: HostConfig,
  verb: 'seal' | 'verify',
  trees: readonly SealedTree[],
): Promise<RunResult> {
  const request: PayloadRequest = { service: host.service, trees: [...trees] };
  try {
    const input = JSON.stringify(request);
    return await askHost(host, ['payload', verb], { input, timeoutSeconds: readingSeconds });
  } catch (error) {
    if (!(error instanceof SshFailure) || error.kind !== 'lost') throw error;
    const remedy = 'the host goes on reading: the same command follows it';
    throw new SshFailure('lost', `${error.message}; ${remedy}`);
  }
}
