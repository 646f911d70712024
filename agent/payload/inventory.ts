import { posix } from 'node:path';
import type { Finding } from '../../shape/inspection.ts';
import type { ExpectedPayload } from '../../shape/payload-expectation.ts';
import type { PayloadFacts } from '../../shape/payload-facts.ts';
import type { Release } from '../../shape/release.ts';
import { mountsOf } from '../../shape/rules/mounts.ts';
import { speculationOf, vllmArguments } from '../../shape/rules/served-model.ts';
import type { Outside } from '../outside.ts';
import { configurationFacts } from './configuration.ts';
import { findInContainer, type MountedTree } from './container-view.ts';
import { type Contents, compareFile, compareWithRecord, contentsText } from './expectation.ts';
import { ExpertCounter } from './experts.ts';
import type { Extent } from './extent.ts';
import { Findings } from './findings.ts';
import { beginLook, type Look, openFolder, type PayloadFolder } from './folder.ts';
import { ggufSet, isPiece } from './gguf-set.ts';
import { tellLinks } from './links.ts';
import { checkModelFiles } from './model-files.ts';
import { payloadFacts } from './payload-facts.ts';
import { type JsonObject, jsonOf } from './read-file.ts';
import { safetensorsSet } from './safetensors-set.ts';
import { listed, shown } from './wording.ts';

export interface Inventory {
  /** Of the payload; null: there is nothing to be known, or a finding says why not. */
  readonly facts: PayloadFacts | null;
  readonly findings: readonly Finding[];
  /** What each folder holds, e.g. `34 files and 2 extra files, 113,074 tensors, 170.10 GiB`. */
  readonly contents: readonly string[];
}

/** A folder or file that a release mounts and that holds weights, or may. */
interface Part extends MountedTree {
  readonly subject: string;
  readonly expected: ExpectedPayload | undefined;
  readonly role: 'payload' | 'drafter' | 'mount';
}

/**
 * Whether what a release would have mounted is what it claims to be: names, headers and sizes, as the engine will see
 * them in its container. Reads no weights and writes nothing; bounded in bytes and time, whatever lies there.
 */
export async function inventoryOf(outside: Outside, release: Release, extent: Extent): Promise<Inventory> {
  const parts = partsOf(release);
  const look = beginLook(outside, treesOf(release), extent);
  const results: (Inventory & { readonly part: Part })[] = [];
  for (const part of parts) results.push({ part, ...(await inventoryOfPart(look, release, part)) });
  const asked = new Findings('payload');
  await asked.attempt(() => checkArguments(look, release, parts, asked));
  return {
    facts: results[0]?.facts ?? null,
    findings: [...results.flatMap(({ findings }) => findings), ...asked.all],
    contents: results.flatMap(({ contents }) => contents),
  };
}

function treesOf(release: Release): readonly MountedTree[] {
  const payload = { source: release.payload.folder, target: payloadTarget(release) };
  const others = mountsOf(release).filter(({ target }) => target !== payload.target);
  return [payload, ...others.map(({ source, target }) => ({ source, target }))];
}

function payloadTarget(release: Release): string {
  return mountsOf(release).find(({ source }) => source === release.payload.folder)?.target ?? '/model';
}

function partsOf(release: Release): readonly Part[] {
  const drafter = speculationOf(release)?.drafter;
  const mounts = (release.mounts ?? []).map(
    ({ source, target, expected }): Part => ({
      source,
      target,
      subject: `mount ${target}`,
      expected,
      role: drafter === target ? 'drafter' : 'mount',
    }),
  );
  const { folder, expected } = release.payload;
  return [
    { source: folder, target: payloadTarget(release), subject: 'payload', expected, role: 'payload' },
    ...mounts,
  ];
}

async function inventoryOfPart(look: Look, release: Release, part: Part): Promise<Inventory> {
  const findings = new Findings(part.subject);
  const { outside } = look;
  // What cannot be asked for, as a link that leads back to itself, is not there.
  const kind = await outside.kindOf(part.source).catch(() => 'absent' as const);
  const nothing = (): Inventory => ({ facts: null, findings: findings.all, contents: [] });
  if (kind === 'file' && part.role !== 'payload') {
    await findings.attempt(() => checkMountedFile(look, part, findings));
    return nothing();
  }
  if (kind !== 'folder') {
    findings.add('refuse', `${part.source} is not ${part.role === 'payload' ? 'a folder ' : ''}on the host`);
    return nothing();
  }
  const found = await findings.attempt(() => inventoryOfFolder(look, release, part, findings));
  if (found === undefined) return nothing();
  return {
    facts: found.facts,
    findings: findings.all,
    contents: found.contents ? [`${part.source}: ${contentsText(found.contents)}`] : [],
  };
}

interface FolderContents {
  readonly facts: PayloadFacts | null;
  readonly contents: Contents | undefined;
}

async function inventoryOfFolder(
  look: Look,
  release: Release,
  part: Part,
  findings: Findings,
): Promise<FolderContents> {
  const { base, file } = await placeOf(look, release, part);
  const folder = await openFolder(look, base);
  await findings.attempt(() => tellLinks(folder, findings));
  const entry = file ?? (part.role === 'payload' ? undefined : onlyGguf(folder));
  const result =
    entry === undefined
      ? await inventoryOfSafetensors(folder, release, part, findings)
      : await inventoryOfGguf(folder, release, part, entry, findings);
  checkContents(result.contents, part, findings);
  for (const [name, { bytes }] of Object.entries(part.expected?.files ?? {})) {
    compareFile(name, await bytesOf(look, `${base}/${name}`), bytes, findings);
  }
  const unfinished = [...folder.entries.keys()].filter(
    (name) =>
      /\.(?:incomplete|part|partial|aria2|crdownload|tmp|download)$/i.test(name) ||
      (isPiece(name) && name !== entry),
  );
  if (unfinished.length > 0)
    findings.add(
      'warn',
      `${listed(unfinished)}: ${unfinished.length === 1 ? 'it is' : 'they are'} what an unfinished download leaves`,
    );
  return result;
}

function checkContents(
  contents: Contents | undefined,
  { role, expected = {} }: Part,
  findings: Findings,
): void {
  if (contents !== undefined) {
    if (contents.tensors === 0 && !findings.explains)
      findings.add('refuse', 'its files describe no tensor at all');
    compareWithRecord(contents, expected, findings);
  } else if (!findings.explains && Object.keys(expected).some((key) => key !== 'files')) {
    const what = role === 'mount' ? 'it holds no weights' : 'its weights are none';
    findings.add('refuse', `${what} that can be counted, and the shape says how many it expects`);
  }
}

/** The folder of the weights in the container, and the file in it that the engine is pointed at. */
async function placeOf(
  look: Look,
  release: Release,
  { target, role }: Part,
): Promise<{ readonly base: string; readonly file: string | undefined }> {
  if (role !== 'payload') return { base: target, file: undefined };
  const entry = release.payload.entry ?? entryInArguments(release, target);
  if (entry === undefined) return { base: target, file: undefined };
  const path = posix.join(target, entry);
  const found = await findInContainer(look.outside, look.trees, path);
  const isFolder = found.kind === 'there' && found.status.kind === 'folder';
  return isFolder
    ? { base: path, file: undefined }
    : { base: posix.dirname(path), file: posix.basename(path) };
}

/** Of engines whose arguments may name the file below the payload's folder themselves. */
function entryInArguments({ engineKind, arguments: words }: Release, target: string): string | undefined {
  if (engineKind === 'vllm') return undefined;
  const at = words.findIndex((word) => word === '--model' || word === '-m' || word.startsWith('--model='));
  const path = words[at]?.startsWith('--model=') ? words[at].slice('--model='.length) : words[at + 1];
  return at !== -1 && path?.startsWith(`${target}/`) ? path.slice(target.length + 1) : undefined;
}

/** The first part of the one GGUF model of a folder that holds no other weights. */
function onlyGguf({ entries }: PayloadFolder): string | undefined {
  const names = [...entries.keys()];
  return names.some((name) => name.endsWith('.safetensors'))
    ? undefined
    : names.find((name) => name.endsWith('.gguf'));
}

async function inventoryOfSafetensors(
  folder: PayloadFolder,
  release: Release,
  part: Part,
  findings: Findings,
): Promise<FolderContents> {
  const isServed = part.role === 'payload' && release.engineKind === 'vllm';
  const config = await configOf(folder, isServed || part.role === 'drafter', findings);
  const experts = new ExpertCounter(config === undefined ? null : configurationFacts(config).layers);
  const set = await safetensorsSet(folder, findings, (name, tensors) => experts.see(name, tensors));
  if (set === undefined && part.role !== 'mount' && !findings.explains) tellNoWeights(folder, findings);
  if (isServed && config !== undefined)
    await checkModelFiles(folder, config, vllmArguments(release), findings);
  const contents = set && {
    shards: set.shards.length,
    extraFiles: set.extraFiles,
    tensors: set.tensors,
    bytes: set.bytes,
  };
  if (config === undefined || part.role !== 'payload') return { facts: null, contents };
  return { facts: await payloadFacts(config, set && experts.counted(), findings), contents };
}

async function configOf(
  folder: PayloadFolder,
  isNeeded: boolean,
  findings: Findings,
): Promise<JsonObject | undefined> {
  const { kind = 'absent' } = folder.entries.get('config.json') ?? {};
  if (kind === 'absent') {
    if (isNeeded && !folder.entries.has('config.json')) findings.add('refuse', 'it has no config.json');
    return undefined;
  }
  // Links are told together, with what to do.
  if (kind === 'unreachable' || kind === 'loop') return undefined;
  return findings.attempt(() => jsonOf(folder, 'config.json', folder.extent.configBytes));
}

function tellNoWeights({ entries }: PayloadFolder, findings: Findings): void {
  const names = [...entries.keys()];
  const gguf = names.filter((name) => /\.gguf/.test(name));
  const others = names.filter((name) => /\.(?:bin|pt|pth|ckpt|h5|msgpack|onnx|npz)$/.test(name));
  if (gguf.length > 0) {
    findings.add(
      'refuse',
      `it holds no safetensors files and ${listed(gguf)}: name the first GGUF file in slot:shape.payload.entry`,
    );
  } else if (others.length > 0)
    findings.add(
      'warn',
      `its weights are not looked at: ${listed(others)} are of a kind that says nothing of itself`,
    );
  else findings.add('refuse', 'it holds no weights: no safetensors and no GGUF file');
}

async function inventoryOfGguf(
  folder: PayloadFolder,
  release: Release,
  part: Part,
  entry: string,
  findings: Findings,
): Promise<FolderContents> {
  const set = await ggufSet(folder, entry, findings);
  const config = await configOf(folder, false, findings);
  const method = config && quantizationOf(config);
  if (method !== undefined && method !== 'gguf') {
    // https://github.com/vllm-project/vllm/issues/19050
    const isRead = release.engineKind === 'vllm';
    findings.add(
      isRead ? 'refuse' : 'warn',
      `config.json beside ${shown(entry)} says quant_method ${shown(method)}, which is of another export: ${isRead ? 'vLLM refuses the pair; ' : ''}take it out of the folder`,
    );
  }
  if (set?.first?.hasTokenizer === false && part.role === 'payload') {
    findings.add('warn', `${shown(entry)} holds no tokenizer`);
  }
  return {
    facts: null,
    contents: set && { shards: set.files.length, extraFiles: [], tensors: set.tensors, bytes: set.bytes },
  };
}

function quantizationOf(config: JsonObject): string | undefined {
  const { quantization_config: quantization } = config;
  if (quantization === null || typeof quantization !== 'object') return undefined;
  const { quant_method: method } = quantization as JsonObject;
  return typeof method === 'string' ? method.toLowerCase() : undefined;
}

async function bytesOf({ outside, trees }: Look, path: string): Promise<number | undefined> {
  const found = await findInContainer(outside, trees, path);
  return found.kind === 'there' && found.status.kind === 'file' ? found.status.size : undefined;
}

/** A single file in the container, e.g. a chat template: by its size alone, and its header if it has weights. */
async function checkMountedFile(
  look: Look,
  { source, target, expected }: Part,
  findings: Findings,
): Promise<void> {
  const name = posix.basename(source);
  const recorded = expected?.files?.[name];
  if (recorded !== undefined) compareFile(name, await bytesOf(look, target), recorded.bytes, findings);
  for (const other of Object.keys(expected?.files ?? {})) {
    if (other !== name) compareFile(other, undefined, undefined, findings);
  }
  if (target.endsWith('.gguf'))
    await ggufSet(
      await openFolder(
        { ...look, trees: [{ source: posix.dirname(source), target: posix.dirname(target) }] },
        posix.dirname(target),
      ),
      name,
      findings,
    );
}

/** Files below what is mounted that the arguments name: each must be there. */
async function checkArguments(
  look: Look,
  release: Release,
  parts: readonly Part[],
  findings: Findings,
): Promise<void> {
  const entry =
    release.payload.entry === undefined
      ? undefined
      : posix.join(payloadTarget(release), release.payload.entry);
  const paths = new Set(
    release.arguments.flatMap((word) =>
      [...word.matchAll(/(?:^|[="\s])(\/[^"\s,=]+)/g)].map(([, path = '']) => path),
    ),
  );
  for (const path of paths) {
    const part = parts.find(({ target }) => path.startsWith(`${target}/`));
    if (part === undefined || path === entry) continue;
    const found = await findInContainer(look.outside, look.trees, path);
    if (found.kind === 'absent')
      findings.add(
        'refuse',
        `the arguments name ${shown(path)}, and ${shown(path.slice(part.target.length + 1))} is not in ${part.source}`,
      );
    if (found.kind !== 'there' || !path.endsWith('.gguf')) continue;
    if (path.slice(part.target.length + 1) === entryInArguments(release, part.target)) continue;
    await ggufSet(await openFolder(look, posix.dirname(path)), posix.basename(path), findings);
  }
}
