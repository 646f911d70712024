import type { Findings } from './findings.ts';
import { insteadOfFile, type PayloadFolder } from './folder.ts';
import { LookIsOver, PayloadFault } from './payload-fault.ts';
import { jsonOf } from './read-file.ts';
import { checkLayout, type SafetensorsHeader, safetensorsHeader } from './safetensors.ts';
import { missingSiblings, shardNameOf } from './shard-names.ts';
import { counted, listed, shown } from './wording.ts';

/** Where each tensor lies. To list a hundred thousand names takes as long as to parse some headers: it is done once. */
interface WeightMap {
  /** By the tensor's name; what an index says is not trusted to be a file. */
  readonly fileOf: Readonly<Record<string, unknown>>;
  readonly names: readonly string[];
}

export interface TensorSet {
  /** Of the index, else of the headers. */
  readonly weightMap: WeightMap;
  /** Files of the numbered set, or the one file that is all. */
  readonly shards: readonly string[];
  readonly extraFiles: readonly string[];
  /** Of all files, shards and extra ones. */
  readonly bytes: number;
}

/** Which engines look for first. */
const usualIndex = 'model.safetensors.index.json';
const isSafetensors = (name: string): boolean => name.endsWith('.safetensors');

/**
 * Holds files, headers and index against each other: everything that one of them names is in the others, once.
 * Undefined: there is nothing of the kind.
 */
export async function safetensorsSet(
  folder: PayloadFolder,
  findings: Findings,
): Promise<TensorSet | undefined> {
  const files = [...folder.entries.keys()].filter(isSafetensors);
  const index = indexIn(folder);
  if (files.length === 0 && index === undefined) return undefined;
  const indexed = index === undefined ? undefined : await findings.attempt(() => weightMapOf(folder, index));
  if (index !== undefined && indexed === undefined) return undefined;

  const named = indexed && filesNamed(indexed, index ?? '', findings);
  const members = named ? [...named.keys()] : files;
  if (!areThere(folder, files, members, index, findings)) return undefined;
  checkNumbers(files, members, index, findings);

  const headers = new HeaderCheck(folder, indexed, named, findings);
  for (const file of files) {
    if (!(await headers.check(file))) break;
  }
  const shards = members.filter((name) => shardNameOf(name) !== undefined);
  const extraFiles = files.filter((name) =>
    shards.length === 0 ? !members.includes(name) : shardNameOf(name) === undefined,
  );
  if (index !== undefined) tellUnnamed(files, members, index, headers.repeated, findings);
  return {
    weightMap: indexed ?? headers.collected(),
    shards: shards.length === 0 ? members : shards,
    extraFiles,
    bytes: files.reduce((sum, name) => sum + (folder.entries.get(name)?.bytes ?? 0), 0),
  };
}

function indexIn({ entries }: PayloadFolder): string | undefined {
  return entries.has(usualIndex)
    ? usualIndex
    : [...entries.keys()].find((name) => name.endsWith('.safetensors.index.json'));
}

async function weightMapOf(folder: PayloadFolder, index: string): Promise<WeightMap> {
  const { weight_map: fileOf } = await jsonOf(folder, index, folder.extent.indexBytes);
  if (fileOf === null || typeof fileOf !== 'object' || Array.isArray(fileOf)) {
    throw new PayloadFault('refuse', `${index} has no weight_map`);
  }
  const names = Object.keys(fileOf);
  if (names.length === 0) throw new PayloadFault('refuse', `the weight_map of ${index} is empty`);
  return { fileOf: fileOf as WeightMap['fileOf'], names };
}

/** How many tensors of each file the index names. */
function filesNamed(
  { fileOf, names }: WeightMap,
  index: string,
  findings: Findings,
): ReadonlyMap<string, number> {
  const named = new Map<string, number>();
  let run: { readonly file: unknown; count: number } | undefined;
  const close = (): void => {
    if (run !== undefined) named.set(run.file as string, (named.get(run.file as string) ?? 0) + run.count);
  };
  for (const tensor of names) {
    const file = fileOf[tensor];
    // Names of one file mostly stand together, and to look each up in a map takes its time.
    if (run !== undefined && file === run.file) {
      run.count += 1;
      continue;
    }
    close();
    run = undefined;
    // Nothing outside the folder is opened by a name in it.
    if (typeof file === 'string' && /^[^/\0]+\.safetensors$/.test(file)) {
      run = { file, count: 1 };
      continue;
    }
    const written = shown(JSON.stringify(file));
    findings.add('refuse', `${index} names ${written} for ${shown(tensor)}, which is no file of the folder`);
  }
  close();
  return named;
}

/** Whether there is anything to hold against each other. */
function areThere(
  { entries }: PayloadFolder,
  files: readonly string[],
  members: readonly string[],
  index: string | undefined,
  findings: Findings,
): boolean {
  const missing = [
    ...new Set([...members.filter((name) => !entries.has(name)), ...missingSiblings(members)]),
  ].sort();
  if (missing.length === 0) return true;
  const unnamed = files.filter((name) => !members.includes(name));
  if (index !== undefined && missing.length >= members.length && unnamed.length > 0) {
    findings.add(
      'refuse',
      `${index} is of another export: it names ${listed(members)}, and here is ${listed(unnamed)}`,
    );
    return false;
  }
  const of = unnamed.length > 0 ? `; here is also ${listed(unnamed)}, which ${index} does not name` : '';
  findings.add(
    'refuse',
    `${counted(missing.length, 'file')} with weights ${missing.length === 1 ? 'is' : 'are'} missing: ${listed(missing)}${of}`,
  );
  return files.length > 0;
}

/** What the names of the files say of themselves. */
function checkNumbers(
  files: readonly string[],
  members: readonly string[],
  index: string | undefined,
  findings: Findings,
): void {
  const counts = new Map<string, Set<number>>();
  for (const name of files) {
    const shard = shardNameOf(name);
    if (shard === undefined) continue;
    if (shard.number < 1 || shard.number > shard.count)
      findings.add('refuse', `${shown(name)} is no number of a set of ${shard.count}`);
    counts.set(shard.set, (counts.get(shard.set) ?? new Set()).add(shard.count));
  }
  for (const several of counts.values()) {
    if (several.size > 1) {
      findings.add(
        'refuse',
        `the files are of several exports: of ${[...several]
          .sort((a, b) => a - b)
          .slice(0, 6)
          .join(' and of ')} files each`,
      );
    }
  }
  if (
    index === undefined &&
    [...counts.values()].some((several) => [...several].some((count) => count > 1))
  ) {
    findings.add(
      'refuse',
      `${counted(members.length, 'file')} of a numbered set, and no ${usualIndex} that says what they hold: copy it as well`,
    );
  }
}

/** Files that the index passes over: engines load what it names, others load all that is there. */
function tellUnnamed(
  files: readonly string[],
  members: readonly string[],
  index: string,
  repeated: ReadonlyMap<string, number>,
  findings: Findings,
): void {
  const unnamed = files.filter((name) => !members.includes(name));
  if (unnamed.length === 0) return;
  const sets = members.map((name) => shardNameOf(name)?.set);
  const isOfSet = (name: string): boolean => sets.includes(shardNameOf(name)?.set ?? '');
  if (unnamed.includes('model.safetensors') || unnamed.some(isOfSet)) {
    findings.add(
      'refuse',
      `${listed(unnamed)} and what ${index} names are of two exports: take one of them out of the folder`,
    );
    return;
  }
  const again = unnamed.flatMap((name) =>
    repeated.has(name) ? [`${shown(name)} repeats ${counted(repeated.get(name) ?? 0, 'tensor')}`] : [],
  );
  findings.add(
    'warn',
    `${index} does not name ${listed(unnamed)}${again.length > 0 ? `; ${again.join(', ')} of the set` : ''}`,
  );
}

/** Holds the headers of one file after the other against the index, or against each other where there is none. */
class HeaderCheck {
  /** Tensors of the set that a file beside it holds as well. */
  readonly repeated = new Map<string, number>();
  readonly #folder: PayloadFolder;
  /** Undefined: there is no index. */
  readonly #index: WeightMap | undefined;
  readonly #named: ReadonlyMap<string, number>;
  readonly #findings: Findings;
  /** File of each tensor where there is no index. */
  readonly #collected = new Map<string, string>();
  /** Names of the index by their file, as soon as a file lacks one. */
  #namesOf: ReadonlyMap<unknown, readonly string[]> | undefined;
  #headerBytes = 0;

  constructor(
    folder: PayloadFolder,
    index: WeightMap | undefined,
    named: ReadonlyMap<string, number> | undefined,
    findings: Findings,
  ) {
    this.#folder = folder;
    this.#index = index;
    this.#named = named ?? new Map();
    this.#findings = findings;
  }

  collected(): WeightMap {
    return { fileOf: Object.fromEntries(this.#collected), names: [...this.#collected.keys()] };
  }

  /** Whether to go on. */
  async check(file: string): Promise<boolean> {
    const { entries, extent } = this.#folder;
    const entry = entries.get(file);
    if (entry !== undefined && entry.kind !== 'file') {
      // Links are told together, with what to do.
      if (entry.kind === 'folder' || entry.kind === 'other')
        this.#findings.add('refuse', `${shown(file)} ${insteadOfFile(entry.kind)}`);
      return true;
    }
    try {
      const header = await safetensorsHeader(this.#folder, file);
      this.#headerBytes += header.headerBytes;
      this.#compare(file, header);
      checkLayout(file, header);
    } catch (error) {
      if (!(error instanceof PayloadFault)) throw error;
      this.#findings.add(error.severity, error.message);
      // The same would be said of every further file.
      if (error instanceof LookIsOver) return false;
    }
    if (this.#headerBytes <= extent.allHeaderBytes) return true;
    this.#findings.add(
      extent.beyond,
      `what follows ${shown(file)} was not looked at: the headers have more than the ${counted(extent.allHeaderBytes, 'byte')} that ${extent.name} reads`,
    );
    return false;
  }

  #compare(file: string, { names }: SafetensorsHeader): void {
    if (this.#index === undefined) this.#collect(file, names);
    else if (this.#named.has(file)) this.#compareWithIndex(file, names, this.#index);
    else {
      const { fileOf } = this.#index;
      const again = names.filter((tensor) => Object.hasOwn(fileOf, tensor)).length;
      if (again > 0) this.repeated.set(file, again);
    }
  }

  #collect(file: string, names: readonly string[]): void {
    const twice = names.filter((tensor) => this.#collected.has(tensor));
    for (const tensor of names) this.#collected.set(tensor, file);
    if (twice.length > 0)
      this.#findings.add('refuse', `${shown(file)} holds ${listed(twice)}, which another file holds as well`);
  }

  #compareWithIndex(file: string, names: readonly string[], { fileOf }: WeightMap): void {
    const strangers: string[] = [];
    for (const tensor of names) if (fileOf[tensor] !== file) strangers.push(tensor);
    const elsewhere = strangers.filter((tensor) => Object.hasOwn(fileOf, tensor));
    const unknown = strangers.filter((tensor) => !Object.hasOwn(fileOf, tensor));
    const agree = names.length - strangers.length;
    const lacking = agree === this.#named.get(file) ? [] : this.#lackingIn(file, names);
    const tell = (message: string) => this.#findings.add('refuse', `${shown(file)} ${message}`);
    if (agree === 0 && unknown.length > 0 && lacking.length > 0) {
      tell(
        `is of another export than the index: it holds ${listed(unknown)}, and the index finds ${listed(lacking)} there`,
      );
      return;
    }
    if (elsewhere.length > 0) {
      const other = shown(String(fileOf[elsewhere[0] ?? '']));
      tell(`holds ${listed(elsewhere)}, which the index finds in ${other}`);
    }
    if (unknown.length > 0) tell(`holds ${listed(unknown)}, which the index does not name`);
    if (lacking.length > 0) tell(`does not hold ${listed(lacking)}, which the index finds there`);
  }

  #lackingIn(file: string, names: readonly string[]): readonly string[] {
    this.#namesOf ??= Map.groupBy(this.#index?.names ?? [], (tensor) => this.#index?.fileOf[tensor]);
    const held = new Set(names);
    return this.#namesOf.get(file)?.filter((tensor) => !held.has(tensor)) ?? [];
  }
}
