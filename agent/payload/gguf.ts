import type { PayloadFolder } from './folder.ts';
import { PayloadFault } from './payload-fault.ts';
import { impostorIn } from './read-file.ts';
import { counted, shown } from './wording.ts';

export interface GgufHeader {
  readonly architecture: string | undefined;
  /** Of a file that says nothing of a split: 0 of 0. */
  readonly splitNumber: number;
  readonly splitCount: number;
  /** Of all parts together; undefined: it does not say. */
  readonly splitTensors: number | undefined;
  readonly tensors: number;
  readonly hasTokenizer: boolean;
  readonly hasChatTemplate: boolean;
  readonly fileBytes: number;
}

/** A message that goes on after the file's name. */
type Refuse = (message: string) => PayloadFault;

/** Newest that llama.cpp reads; 1 had other lengths. */
const [oldestVersion, newestVersion] = [2, 3];

/** A header is read in steps, because nothing in it says how long it is. */
const stepBytes = [2 ** 18, 2 ** 22, 2 ** 24, 2 ** 26];

/** Elements of a block and its bytes, by the number of the type, as ggml defines them. */
const blocks: ReadonlyMap<number, readonly [elements: number, bytes: number]> = new Map([
  [0, [1, 4]],
  [1, [1, 2]],
  [2, [32, 18]],
  [3, [32, 20]],
  [6, [32, 22]],
  [7, [32, 24]],
  [8, [32, 34]],
  [10, [256, 84]],
  [11, [256, 110]],
  [12, [256, 144]],
  [13, [256, 176]],
  [14, [256, 210]],
  [15, [256, 292]],
  [16, [256, 66]],
  [17, [256, 74]],
  [18, [256, 98]],
  [19, [256, 50]],
  [20, [32, 18]],
  [21, [256, 110]],
  [22, [256, 82]],
  [23, [256, 136]],
  [24, [1, 1]],
  [25, [1, 2]],
  [26, [1, 4]],
  [27, [1, 8]],
  [28, [1, 8]],
  [29, [256, 56]],
  [30, [1, 2]],
  [34, [256, 54]],
  [35, [256, 66]],
  [39, [32, 17]],
]);

/** Bytes of a value of metadata by the number of its type; text and list have a length of their own. */
const valueBytes: ReadonlyMap<number, number> = new Map([
  [0, 1],
  [1, 1],
  [2, 2],
  [3, 2],
  [4, 4],
  [5, 4],
  [6, 4],
  [7, 1],
  [10, 8],
  [11, 8],
  [12, 8],
]);
const [textType, listType] = [8, 9];
/** Lists in lists: the format allows them, nobody has written one. */
const deepestList = 4;

/**
 * A GGUF file by its header: it holds every tensor that it describes, and nothing beyond.
 *
 * @throws PayloadFault where it does not, or is no GGUF file
 */
export async function ggufHeader(folder: PayloadFolder, name: string): Promise<GgufHeader> {
  for (const step of stepBytes) {
    const { bytes, fileBytes } = await folder.part(name, 0, Math.min(step, folder.extent.headerBytes));
    const header = headerIn(shown(name), bytes, fileBytes);
    if (header !== undefined) return header;
  }
  const { headerBytes, name: look, beyond } = folder.extent;
  const most = Math.min(stepBytes.at(-1) ?? 0, headerBytes);
  throw new PayloadFault(
    beyond,
    `${shown(name)} has a header of more than the ${counted(most, 'byte')} that ${look} reads`,
  );
}

/** Undefined: the bytes end before the header does. */
function headerIn(name: string, bytes: Buffer, fileBytes: number): GgufHeader | undefined {
  const refuse: Refuse = (message) => new PayloadFault('refuse', `${name} ${message}`);
  const magic = bytes.toString('latin1', 0, 4);
  if (magic !== 'GGUF') {
    const impostor = impostorIn(bytes, 'weights');
    if (impostor !== undefined) throw refuse(`is ${impostor}`);
    throw refuse(
      /^(?:lmgg|ggml|tjgg|fmgg)/.test(magic)
        ? 'is of a format before GGUF: convert it'
        : `is no GGUF file: it begins with ${shown(JSON.stringify(magic))}`,
    );
  }
  const input = new Input(bytes, fileBytes);
  try {
    input.skip(4);
    const version = input.u32();
    if ((version & 0xffff) === 0) throw refuse('is a GGUF file for machines of the other byte order');
    if (version < oldestVersion)
      throw refuse(`is of GGUF version ${version}, which llama.cpp reads no longer: convert it`);
    if (version > newestVersion) {
      throw new PayloadFault(
        'warn',
        `${name} is of GGUF version ${version}, which is not known here: it was not looked at`,
      );
    }
    const tensors = input.u64();
    const values = input.u64();
    const metadata = readMetadata(input, values);
    const layout = readTensors(input, tensors, refuse);
    const alignment = metadata.numbers.get('general.alignment') ?? 32;
    if (alignment < 1 || alignment > 2 ** 20 || !Number.isInteger(Math.log2(alignment)))
      throw refuse(`has an alignment of ${alignment}, which is no power of two`);
    checkEnd(layout, { start: aligned(input.at, alignment), alignment, fileBytes }, refuse);
    return {
      architecture: metadata.architecture,
      splitNumber: metadata.numbers.get('split.no') ?? 0,
      splitCount: metadata.numbers.get('split.count') ?? 0,
      splitTensors: metadata.numbers.get('split.tensors.count'),
      tensors,
      hasTokenizer: metadata.keys.has('tokenizer.ggml.model'),
      hasChatTemplate: metadata.keys.has('tokenizer.chat_template'),
      fileBytes,
    };
  } catch (error) {
    if (error === pastEnd) return undefined;
    if (error === pastFile)
      throw refuse(`is cut: it ends within its header, after ${counted(fileBytes, 'byte')}`);
    if (error instanceof RangeError) throw refuse(`has a header that cannot be: ${error.message}`);
    throw error;
  }
}

interface Metadata {
  readonly keys: ReadonlySet<string>;
  readonly numbers: ReadonlyMap<string, number>;
  readonly architecture: string | undefined;
}

function readMetadata(input: Input, values: number): Metadata {
  const keys = new Set<string>();
  const numbers = new Map<string, number>();
  let architecture: string | undefined;
  for (let index = 0; index < values; index += 1) {
    const key = input.text();
    keys.add(key);
    const type = input.u32();
    if (key === 'general.architecture' && type === textType) architecture = input.text();
    else if (/^(?:split\.|general\.alignment$)/.test(key) && valueBytes.has(type))
      numbers.set(key, input.number(type));
    else input.skipValue(type, 0);
  }
  return { keys, numbers, architecture };
}

interface GgufTensor {
  readonly name: string;
  readonly offset: number;
  /** Undefined: its type is not known here. */
  readonly bytes: number | undefined;
}

function readTensors(input: Input, count: number, refuse: Refuse): readonly GgufTensor[] {
  const found: GgufTensor[] = [];
  for (let index = 0; index < count; index += 1) {
    const name = input.text();
    const dimensions = input.u32();
    if (dimensions > 8) throw refuse(`gives ${shown(name)} ${dimensions} dimensions`);
    let elements = 1;
    for (let dimension = 0; dimension < dimensions; dimension += 1) elements *= input.u64();
    const block = blocks.get(input.u32());
    if (block !== undefined && elements % block[0] !== 0)
      throw refuse(`gives ${shown(name)} a part of a block`);
    found.push({ name, offset: input.u64(), bytes: block && (elements / block[0]) * block[1] });
  }
  return found;
}

function checkEnd(
  tensors: readonly GgufTensor[],
  {
    start,
    alignment,
    fileBytes,
  }: { readonly start: number; readonly alignment: number; readonly fileBytes: number },
  refuse: Refuse,
): void {
  const areKnown = tensors.every(({ bytes }) => bytes !== undefined);
  let end = 0;
  for (const { name, offset, bytes } of tensors.toSorted((a, b) => a.offset - b.offset)) {
    if (offset < end)
      throw refuse(
        `lets ${shown(name)} and the tensor before it overlap by ${counted(end - offset, 'byte')}`,
      );
    if (offset % alignment !== 0) throw refuse(`puts ${shown(name)} where no tensor may begin`);
    // llama.cpp adds them up and refuses what lies elsewhere.
    const gap = offset - aligned(end, alignment);
    if (gap > 0 && areKnown)
      throw refuse(`leaves ${counted(gap, 'byte')} before ${shown(name)} that no tensor has`);
    end = offset + (bytes ?? 0);
  }
  const needed = start + end;
  if (tensors.length > 0 && fileBytes < needed)
    throw refuse(`is cut: ${counted(needed - fileBytes, 'byte')} of ${needed} are missing at its end`);
  const most = aligned(needed, alignment);
  if (fileBytes > most && areKnown) {
    throw refuse(
      `has ${counted(fileBytes - most, 'byte')} more than its header describes, as files that were joined with cat`,
    );
  }
}

function aligned(bytes: number, alignment: number): number {
  return Math.ceil(bytes / alignment) * alignment;
}

/** Thrown where a value goes on behind the bytes that were read. */
const pastEnd = new Error('past the end');
/** The same behind the end of the file itself. */
const pastFile = new Error('past the end of the file');

/** Values one after the other, little-endian. */
class Input {
  at = 0;
  readonly #bytes: Buffer;
  readonly #fileBytes: number;

  constructor(bytes: Buffer, fileBytes: number) {
    this.#bytes = bytes;
    this.#fileBytes = fileBytes;
  }

  skip(bytes: number): void {
    this.at += bytes;
    if (this.at > this.#bytes.length) throw this.at > this.#fileBytes ? pastFile : pastEnd;
  }

  u32(): number {
    this.skip(4);
    return this.#bytes.readUInt32LE(this.at - 4);
  }

  u64(): number {
    const low = this.u32();
    const high = this.u32();
    // No file has as many bytes or tensors.
    if (high >= 2 ** 20) throw new RangeError(`a length of more than ${2 ** 52}`);
    return high * 2 ** 32 + low;
  }

  text(): string {
    const length = this.u64();
    this.skip(length);
    return this.#bytes.toString('latin1', this.at - length, this.at);
  }

  number(type: number): number {
    const size = valueBytes.get(type) ?? 0;
    this.skip(size);
    const whole = this.#bytes.subarray(this.at - size, this.at);
    return size > 4 ? Number(whole.readBigUInt64LE(0)) : whole.readUIntLE(0, size);
  }

  skipValue(type: number, depth: number): void {
    const size = valueBytes.get(type);
    if (size !== undefined) this.skip(size);
    else if (type === textType) this.skip(this.u64());
    else if (type === listType && depth < deepestList) this.#skipList(depth);
    else throw new RangeError(`a value of type ${type}`);
  }

  #skipList(depth: number): void {
    const of = this.u32();
    const count = this.u64();
    const each = valueBytes.get(of);
    if (each !== undefined) this.skip(each * count);
    else for (let index = 0; index < count; index += 1) this.skipValue(of, depth + 1);
  }
}
