import type { Findings } from './findings.ts';
import { insteadOfFile, type PayloadFolder } from './folder.ts';
import { LookIsOver, PayloadFault } from './payload-fault.ts';
import { jsonOf } from './read-file.ts';
import { checkLayout, readHeader, safetensorsHeader } from './safetensors.ts';
import { missingSiblings, shardNameOf } from './shard-names.ts';
import { counted, listed, shown } from './wording.ts';

export interface TensorSet {
  /** All that the index names, without one all that the files hold. */
  readonly names: readonly string[];
  /** Files of the numbered set, or the one file that is all. */
  readonly shards: readonly string[];
  readonly extraFiles: readonly string[];
  /** Of all files, shards and extra ones. */
  readonly bytes: number;
  /** That holds the tensor; undefined: none that could be read does. */
  fileOf(tensor: string): string | undefined;
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
  const comparison =
    index === undefined
      ? new FilesAlone(files)
      : await findings.attempt(async () => new FilesByIndex(index, await weightMapOf(folder, index)));
  if (comparison === undefined) return undefined;
  await readHeaders(folder, files, findings, comparison);

  const members = comparison.members(findings);
  if (members.length === 0 || !areThere(folder, files, members, index, findings)) return undefined;
  checkNumbers(files, members, index, findings);
  comparison.tell(findings);
  if (index !== undefined) tellUnnamed(files, members, index, comparison, findings);
  const shards = members.filter((name) => shardNameOf(name) !== undefined);
  return {
    names: comparison.names(),
    shards: shards.length === 0 ? members : shards,
    extraFiles: files.filter((name) =>
      shards.length === 0 ? !members.includes(name) : shardNameOf(name) === undefined,
    ),
    bytes: files.reduce((sum, name) => sum + (folder.entries.get(name)?.bytes ?? 0), 0),
    fileOf: (tensor) => comparison.fileOf(tensor),
  };
}

function indexIn({ entries }: PayloadFolder): string | undefined {
  return entries.has(usualIndex)
    ? usualIndex
    : [...entries.keys()].find((name) => name.endsWith('.safetensors.index.json'));
}

type WeightMap = Record<string, unknown>;

async function weightMapOf(folder: PayloadFolder, index: string): Promise<WeightMap> {
  const { weight_map: weightMap } = await jsonOf(folder, index, folder.extent.indexBytes);
  if (weightMap === null || typeof weightMap !== 'object' || Array.isArray(weightMap)) {
    throw new PayloadFault('refuse', `${index} has no weight_map`);
  }
  return weightMap as WeightMap;
}

/** One header after the other, each read while the one before is parsed. */
async function readHeaders(
  folder: PayloadFolder,
  files: readonly string[],
  findings: Findings,
  comparison: Comparison,
): Promise<void> {
  const { entries, extent } = folder;
  const readable = files.filter((file) => {
    const kind = entries.get(file)?.kind ?? 'absent';
    // Links are told together, with what to do.
    if (kind === 'folder' || kind === 'other')
      findings.add('refuse', `${shown(file)} ${insteadOfFile(kind)}`);
    return kind === 'file';
  });
  const begin = (file: string | undefined) => {
    const reading = file === undefined ? undefined : readHeader(folder, file);
    // Whoever waits for it is told; until then nobody does.
    reading?.catch(() => undefined);
    return reading;
  };
  let next = begin(readable[0]);
  let headerBytes = 0;
  for (const [place, file] of readable.entries()) {
    const reading = next;
    try {
      const bytes = await reading;
      if (bytes === undefined) return;
      headerBytes += bytes.bytes.length;
      if (headerBytes > extent.allHeaderBytes) {
        const most = counted(extent.allHeaderBytes, 'byte');
        findings.add(
          extent.beyond,
          `${shown(file)} and what follows was not looked at: the headers have more than the ${most} that ${extent.name} reads`,
        );
        return;
      }
      next = begin(readable[place + 1]);
      const header = safetensorsHeader(file, bytes);
      comparison.add(file, header.names);
      checkLayout(file, header);
    } catch (error) {
      if (!(error instanceof PayloadFault)) throw error;
      findings.add(error.severity, error.message);
      // The same would be said of every further file.
      if (error instanceof LookIsOver) return;
      if (next === reading) next = begin(readable[place + 1]);
    }
  }
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
  comparison: Comparison,
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
  const again = unnamed.flatMap((name) => {
    const repeated = comparison.repeatedBy(name);
    return repeated === 0 ? [] : [`${shown(name)} repeats ${counted(repeated, 'tensor')}`];
  });
  findings.add(
    'warn',
    `${index} does not name ${listed(unnamed)}${again.length > 0 ? `; ${again.join(', ')} of the set` : ''}`,
  );
}

/** What the headers are held against: the index, or each other. */
interface Comparison {
  /** Takes the names of the tensors of one file. */
  add(file: string, names: readonly string[]): void;
  /** Files that hold tensors of the set, or should. */
  members(findings: Findings): readonly string[];
  /** Tells where headers do not agree with what they are held against. */
  tell(findings: Findings): void;
  /** Tensors of the set that a file beside it holds as well. */
  repeatedBy(file: string): number;
  names(): readonly string[];
  fileOf(tensor: string): string | undefined;
}

class FilesAlone implements Comparison {
  readonly #files: readonly string[];
  readonly #fileOf = new Map<string, string>();
  readonly #twice = new Map<string, readonly string[]>();

  constructor(files: readonly string[]) {
    this.#files = files;
  }

  add(file: string, names: readonly string[]): void {
    const twice = names.filter((tensor) => this.#fileOf.has(tensor));
    if (twice.length > 0) this.#twice.set(file, twice);
    for (const tensor of names) this.#fileOf.set(tensor, file);
  }

  members(): readonly string[] {
    return this.#files;
  }

  tell(findings: Findings): void {
    for (const [file, twice] of this.#twice) {
      findings.add('refuse', `${shown(file)} holds ${listed(twice)}, which another file holds as well`);
    }
  }

  repeatedBy(): number {
    return 0;
  }

  names(): readonly string[] {
    return [...this.#fileOf.keys()];
  }

  fileOf(tensor: string): string | undefined {
    return this.#fileOf.get(tensor);
  }
}

/** Names of one file that the index finds in it, and those that it does not. */
interface Held {
  readonly agreed: readonly string[];
  readonly strangers: readonly string[];
}

/**
 * Takes out of the index what is found where it says: of a whole set nothing remains. To list its hundred thousand
 * names takes as long as to parse half of the headers.
 */
class FilesByIndex implements Comparison {
  readonly #index: string;
  readonly #unfound: WeightMap;
  readonly #held = new Map<string, Held>();
  /** What remains of the index, by its file; undefined: not all is taken out yet. */
  #remaining: ReadonlyMap<unknown, readonly string[]> | undefined;
  /** File of each tensor of the index; undefined: nobody has asked. */
  #places: ReadonlyMap<string, unknown> | undefined;

  constructor(index: string, weightMap: WeightMap) {
    this.#index = index;
    this.#unfound = weightMap;
  }

  add(file: string, names: readonly string[]): void {
    const unfound = this.#unfound;
    const strangers: string[] = [];
    for (const tensor of names) {
      if (unfound[tensor] === file) delete unfound[tensor];
      else strangers.push(tensor);
    }
    const agreed = strangers.length === 0 ? names : withoutAll(names, strangers);
    this.#held.set(file, { agreed, strangers });
  }

  members(findings: Findings): readonly string[] {
    const members = new Set(
      [...this.#held].flatMap(([file, { agreed }]) => (agreed.length > 0 ? [file] : [])),
    );
    if (members.size === 0 && this.#lacking().size === 0) {
      findings.add('refuse', `the weight_map of ${this.#index} is empty`);
    }
    for (const [file, tensors] of this.#lacking()) {
      // Nothing outside the folder is looked for by a name in it.
      if (typeof file === 'string' && /^[^/\0]+\.safetensors$/.test(file)) members.add(file);
      else {
        const written = shown(JSON.stringify(file));
        const [tensor = ''] = tensors;
        findings.add(
          'refuse',
          `${this.#index} names ${written} for ${shown(tensor)}, which is no file of the folder`,
        );
      }
    }
    return [...members].sort();
  }

  tell(findings: Findings): void {
    const lacking = this.#lacking();
    for (const [file, { agreed, strangers }] of this.#held) {
      const missing = lacking.get(file) ?? [];
      if (agreed.length + missing.length > 0) this.#tellOf(file, agreed, missing, strangers, findings);
    }
  }

  #tellOf(
    file: string,
    agreed: readonly string[],
    missing: readonly string[],
    strangers: readonly string[],
    findings: Findings,
  ): void {
    const tell = (message: string) => findings.add('refuse', `${shown(file)} ${message}`);
    const elsewhere = strangers.filter((tensor) => this.#placeOf(tensor) !== undefined);
    const unknown = strangers.filter((tensor) => this.#placeOf(tensor) === undefined);
    if (agreed.length === 0 && unknown.length > 0 && missing.length > 0) {
      tell(
        `is of another export than the index: it holds ${listed(unknown)}, and the index finds ${listed(missing)} there`,
      );
      return;
    }
    if (elsewhere.length > 0) {
      const other = shown(String(this.#placeOf(elsewhere[0] ?? '')));
      tell(`holds ${listed(elsewhere)}, which the index finds in ${other}`);
    }
    if (unknown.length > 0) tell(`holds ${listed(unknown)}, which the index does not name`);
    if (missing.length > 0) tell(`does not hold ${listed(missing)}, which the index finds there`);
  }

  repeatedBy(file: string): number {
    const strangers = this.#held.get(file)?.strangers ?? [];
    return strangers.filter((tensor) => this.#placeOf(tensor) !== undefined).length;
  }

  names(): readonly string[] {
    return [...[...this.#held.values()].flatMap(({ agreed }) => agreed), ...Object.keys(this.#unfound)];
  }

  fileOf(tensor: string): string | undefined {
    return [...this.#held].find(([, { agreed }]) => agreed.includes(tensor))?.[0];
  }

  #lacking(): ReadonlyMap<unknown, readonly string[]> {
    this.#remaining ??= Map.groupBy(Object.keys(this.#unfound), (tensor) => this.#unfound[tensor]);
    return this.#remaining;
  }

  #placeOf(tensor: string): unknown {
    this.#places ??= new Map([
      ...[...this.#held].flatMap(([file, { agreed }]) => agreed.map((own) => [own, file] as const)),
      ...Object.entries(this.#unfound),
    ]);
    return this.#places.get(tensor);
  }
}

function withoutAll(names: readonly string[], taken: readonly string[]): readonly string[] {
  const out = new Set(taken);
  return names.filter((name) => !out.has(name));
}
