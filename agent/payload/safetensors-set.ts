import type { Findings } from './findings.ts';
import { insteadOfFile, type PayloadFolder } from './folder.ts';
import { LookIsOver, PayloadFault } from './payload-fault.ts';
import { type JsonObject, jsonOf } from './read-file.ts';
import {
  checkLayout,
  type HeaderBytes,
  readHeader,
  type SafetensorsHeader,
  safetensorsHeader,
} from './safetensors.ts';
import { missingSiblings, shardNameOf } from './shard-names.ts';
import { counted, listed, shown } from './wording.ts';

export interface TensorSet {
  /** Of the index, without one of the files; undefined: not all files were looked at. */
  readonly tensors: number | undefined;
  /** Files of the numbered set, or the one file that is all. */
  readonly shards: readonly string[];
  readonly extraFiles: readonly string[];
  /** Of all files, shards and extra ones. */
  readonly bytes: number;
}

/** Told of each tensor of the set as it is met. */
export type SeeTensor = (name: string, tensors: JsonObject) => void;

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
  see: SeeTensor,
): Promise<TensorSet | undefined> {
  const files = [...folder.entries.keys()].filter(isSafetensors);
  const index = indexIn(folder);
  if (files.length === 0 && index === undefined) return undefined;
  const comparison =
    index === undefined
      ? new FilesAlone(files, see)
      : await findings.attempt(async () => new FilesByIndex(index, await weightMapOf(folder, index), see));
  if (comparison === undefined) return undefined;
  const areAllRead = await readHeaders(folder, files, findings, comparison);

  const members = comparison.members(findings);
  if (members.length === 0 || !areThere(folder, files, members, index, findings)) return undefined;
  checkNumbers(files, members, index, findings);
  // It was emptied: only what is damaged is looked up again.
  const places = index !== undefined && comparison.hasStrangers ? await weightMapOf(folder, index) : {};
  comparison.tell(places, findings);
  if (index !== undefined)
    tellUnnamed(files, members, index, (file) => comparison.repeatedBy(file, places), findings);
  const shards = members.filter((name) => shardNameOf(name) !== undefined);
  return {
    tensors: index !== undefined || areAllRead ? comparison.tensors : undefined,
    shards: shards.length === 0 ? members : shards,
    extraFiles: files.filter((name) =>
      shards.length === 0 ? !members.includes(name) : shardNameOf(name) === undefined,
    ),
    bytes: files.reduce((sum, name) => sum + (folder.entries.get(name)?.bytes ?? 0), 0),
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

/** Headers that are read while another is parsed: each takes several steps, of which one is done between two parsings. */
const readAhead = 6;

/** Whether each was read. */
async function readHeaders(
  folder: PayloadFolder,
  files: readonly string[],
  findings: Findings,
  comparison: Comparison,
): Promise<boolean> {
  const { entries, extent } = folder;
  const readable = files.filter((file) => {
    const kind = entries.get(file)?.kind ?? 'absent';
    // Links are told together, with what to do.
    if (kind === 'folder' || kind === 'other')
      findings.add('refuse', `${shown(file)} ${insteadOfFile(kind)}`);
    return kind === 'file';
  });
  const readings: Promise<HeaderBytes>[] = [];
  let headerBytes = 0;
  let areAllRead = readable.length === files.length;
  for (const [place, file] of readable.entries()) {
    for (const ahead of readable.slice(readings.length, place + readAhead)) {
      const reading = readHeader(folder, ahead);
      // Told to whom awaits it; until then nobody does.
      reading.catch(() => undefined);
      readings.push(reading);
    }
    try {
      const bytes = (await readings[place]) as HeaderBytes;
      delete readings[place];
      headerBytes += bytes.bytes.length;
      if (headerBytes > extent.allHeaderBytes) {
        const most = counted(extent.allHeaderBytes, 'byte');
        findings.add(
          extent.beyond,
          `${shown(file)} and what follows was not looked at: the headers have more than the ${most} that ${extent.name} reads`,
        );
        return false;
      }
      const header = safetensorsHeader(file, bytes);
      comparison.add(file, header);
      checkLayout(file, header);
    } catch (error) {
      if (!(error instanceof PayloadFault)) throw error;
      findings.add(error.severity, error.message);
      // The same would be said of every further file.
      if (error instanceof LookIsOver) return false;
      areAllRead &&= comparison.knows(file);
    }
  }
  return areAllRead;
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
  const named = new Set(members);
  const unnamed = files.filter((name) => !named.has(name));
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
  repeatedBy: (file: string) => number,
  findings: Findings,
): void {
  const named = new Set(members);
  const unnamed = files.filter((name) => !named.has(name));
  if (unnamed.length === 0) return;
  const sets = new Set(members.map((name) => shardNameOf(name)?.set));
  const isOfSet = (name: string): boolean => sets.has(shardNameOf(name)?.set ?? '');
  if (unnamed.includes('model.safetensors') || unnamed.some(isOfSet)) {
    findings.add(
      'refuse',
      `${listed(unnamed)} and what ${index} names are of two exports: take one of them out of the folder`,
    );
    return;
  }
  const again = unnamed.flatMap((name) => {
    const repeated = repeatedBy(name);
    return repeated === 0 ? [] : [`${shown(name)} repeats ${counted(repeated, 'tensor')}`];
  });
  findings.add(
    'warn',
    `${index} does not name ${listed(unnamed)}${again.length > 0 ? `; ${again.join(', ')} of the set` : ''}`,
  );
}

/** What the headers are held against: the index, or each other. */
interface Comparison {
  readonly tensors: number;
  readonly hasStrangers: boolean;
  /** Whether it has taken the tensors of this file. */
  knows(file: string): boolean;
  /** Takes the tensors of one file. */
  add(file: string, header: SafetensorsHeader): void;
  /** Files that hold tensors of the set, or should. */
  members(findings: Findings): readonly string[];
  /** Tells where headers do not agree with what they are held against. */
  tell(places: WeightMap, findings: Findings): void;
  /** Tensors of the set that a file beside it holds as well. */
  repeatedBy(file: string, places: WeightMap): number;
}

class FilesAlone implements Comparison {
  readonly hasStrangers = false;
  readonly #files: readonly string[];
  readonly #see: SeeTensor;
  readonly #known = new Set<string>();
  readonly #found = new Set<string>();
  readonly #twice = new Map<string, readonly string[]>();

  constructor(files: readonly string[], see: SeeTensor) {
    this.#files = files;
    this.#see = see;
  }

  get tensors(): number {
    return this.#found.size;
  }

  knows(file: string): boolean {
    return this.#known.has(file);
  }

  add(file: string, { names, tensors }: SafetensorsHeader): void {
    this.#known.add(file);
    const twice: string[] = [];
    for (const tensor of names) {
      if (this.#found.has(tensor)) twice.push(tensor);
      this.#found.add(tensor);
      this.#see(tensor, tensors);
    }
    if (twice.length > 0) this.#twice.set(file, twice);
  }

  members(): readonly string[] {
    return this.#files;
  }

  tell(_places: WeightMap, findings: Findings): void {
    for (const [file, twice] of this.#twice) {
      findings.add('refuse', `${shown(file)} holds ${listed(twice)}, which another file holds as well`);
    }
  }

  repeatedBy(): number {
    return 0;
  }
}

/** How many tensors of a file the index finds in it, and those that it does not. */
interface Held {
  readonly agreed: number;
  readonly strangers: readonly string[];
}

/**
 * Takes out of the index what is found where it says: of a whole set nothing remains. To list its hundred thousand
 * names takes as long as to parse half of the headers.
 */
class FilesByIndex implements Comparison {
  readonly #index: string;
  readonly #unfound: WeightMap;
  readonly #see: SeeTensor;
  readonly #held = new Map<string, Held>();
  /** What remains of the index, by its file; undefined: not all is taken out yet. */
  #remaining: ReadonlyMap<unknown, readonly string[]> | undefined;

  constructor(index: string, weightMap: WeightMap, see: SeeTensor) {
    this.#index = index;
    this.#unfound = weightMap;
    this.#see = see;
  }

  get tensors(): number {
    let tensors = 0;
    for (const { agreed } of this.#held.values()) tensors += agreed;
    for (const names of this.#lacking().values()) tensors += names.length;
    return tensors;
  }

  get hasStrangers(): boolean {
    return [...this.#held.values()].some(({ strangers }) => strangers.length > 0);
  }

  knows(file: string): boolean {
    return this.#held.has(file);
  }

  add(file: string, { names, tensors }: SafetensorsHeader): void {
    const unfound = this.#unfound;
    const strangers: string[] = [];
    let agreed = 0;
    for (const tensor of names) {
      if (unfound[tensor] === file) {
        delete unfound[tensor];
        agreed += 1;
        this.#see(tensor, tensors);
      } else strangers.push(tensor);
    }
    this.#held.set(file, { agreed, strangers });
  }

  members(findings: Findings): readonly string[] {
    const members = new Set([...this.#held].flatMap(([file, { agreed }]) => (agreed > 0 ? [file] : [])));
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

  tell(places: WeightMap, findings: Findings): void {
    for (const [file, { agreed, strangers }] of this.#held) {
      const missing = this.#lacking().get(file) ?? [];
      if (agreed + missing.length === 0) continue;
      const tell = (message: string) => findings.add('refuse', `${shown(file)} ${message}`);
      const elsewhere = strangers.filter((tensor) => Object.hasOwn(places, tensor));
      const unknown = strangers.filter((tensor) => !Object.hasOwn(places, tensor));
      if (agreed === 0 && unknown.length > 0 && missing.length > 0) {
        tell(
          `is of another export than the index: it holds ${listed(unknown)}, and the index finds ${listed(missing)} there`,
        );
        continue;
      }
      if (elsewhere.length > 0) {
        const other = shown(String(places[elsewhere[0] ?? '']));
        tell(`holds ${listed(elsewhere)}, which the index finds in ${other}`);
      }
      if (unknown.length > 0) tell(`holds ${listed(unknown)}, which the index does not name`);
      if (missing.length > 0) tell(`does not hold ${listed(missing)}, which the index finds there`);
    }
  }

  repeatedBy(file: string, places: WeightMap): number {
    const strangers = this.#held.get(file)?.strangers ?? [];
    return strangers.filter((tensor) => Object.hasOwn(places, tensor)).length;
  }

  #lacking(): ReadonlyMap<unknown, readonly string[]> {
    this.#remaining ??= Map.groupBy(Object.keys(this.#unfound), (tensor) => this.#unfound[tensor]);
    return this.#remaining;
  }
}
