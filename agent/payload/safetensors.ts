import type { PayloadFolder } from './folder.ts';
import { PayloadFault } from './payload-fault.ts';
import { impostorIn, type JsonObject, objectIn } from './read-file.ts';
import { counted, shown } from './wording.ts';

export interface SafetensorsHeader {
  /** By name. {@link tensorIn} reads one. */
  readonly tensors: JsonObject;
  /** Of the tensors, in the order of the header. */
  readonly names: readonly string[];
  readonly headerBytes: number;
  readonly fileBytes: number;
}

export interface Tensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly end: number;
}

/** A message that goes on after the file's name. */
type Fault = (message: string) => PayloadFault;

/** The length of the header, little-endian, before it. */
const prefixBytes = 8;

/** Read at once, with the header's length: most headers are shorter. Those of GLM have about 440,000 bytes. */
const firstBytes = 2 ** 19;

/** Bits of one element, as the format defines its types. */
const bitsOf: ReadonlyMap<string, number> = new Map([
  ...['BOOL', 'U8', 'I8', 'F8_E5M2', 'F8_E4M3', 'F8_E8M0', 'F8_E4M3FNUZ', 'F8_E5M2FNUZ'].map(
    (type) => [type, 8] as const,
  ),
  ...['I16', 'U16', 'F16', 'BF16'].map((type) => [type, 16] as const),
  ...['I32', 'U32', 'F32'].map((type) => [type, 32] as const),
  ...['I64', 'U64', 'F64', 'C64'].map((type) => [type, 64] as const),
  ['F4', 4],
  ['F6_E2M3', 6],
  ['F6_E3M2', 6],
]);

/** A header as it lies in its file. */
export interface HeaderBytes {
  readonly bytes: Buffer;
  readonly fileBytes: number;
}

/**
 * No length in it is trusted: nothing is read or allocated by one that the file itself cannot hold.
 *
 * @throws PayloadFault where it is no whole header, or there is no such file
 */
export async function readHeader(folder: PayloadFolder, name: string): Promise<HeaderBytes> {
  const { bytes, fileBytes } = await folder.part(name, 0, firstBytes);
  const impostor = impostorIn(bytes, 'weights');
  if (impostor !== undefined) throw new PayloadFault('refuse', `${shown(name)} is ${impostor}`);
  if (bytes.length < prefixBytes) {
    throw new PayloadFault(
      'refuse',
      `${shown(name)} has ${counted(fileBytes, 'byte')}, too few for a header`,
    );
  }
  const length = bytes.readBigUInt64LE(0);
  if (length > BigInt(fileBytes - prefixBytes)) {
    throw new PayloadFault(
      'refuse',
      `${shown(name)} says that its header has ${length} bytes, and the whole file has ${fileBytes}: it is cut, or no safetensors file`,
    );
  }
  const { headerBytes: most, name: look, beyond } = folder.extent;
  if (length > BigInt(most)) {
    throw new PayloadFault(beyond, `${shown(name)} has a header of ${length} bytes, more than ${look} reads`);
  }
  const end = prefixBytes + Number(length);
  const header =
    end <= bytes.length
      ? bytes.subarray(prefixBytes, end)
      : (await folder.part(name, prefixBytes, Number(length))).bytes;
  if (header.length !== Number(length)) {
    throw new PayloadFault('refuse', `${shown(name)} was cut while it was read`);
  }
  return { bytes: header, fileBytes };
}

/**
 * The tensors of a file by its header alone.
 *
 * @throws PayloadFault where it is none
 */
export function safetensorsHeader(name: string, { bytes, fileBytes }: HeaderBytes): SafetensorsHeader {
  const tensors: Record<string, unknown> = objectIn(`the header of ${shown(name)}`, bytes);
  const { __metadata__: metadata } = tensors;
  if (metadata !== undefined && metadata !== null && !areTexts(metadata)) {
    throw new PayloadFault(
      'refuse',
      `${shown(name)} has a __metadata__ that is no map of texts: engines refuse the whole file`,
    );
  }
  // A copy without it costs a third of the parsing.
  delete tensors.__metadata__;
  return { tensors, names: Object.keys(tensors), headerBytes: bytes.length, fileBytes };
}

/**
 * Whether header and file agree to the byte: the tensors lie one behind the other from the header's end to the file's,
 * and each is as long as its type and dimensions say.
 *
 * @throws PayloadFault where they do not
 */
export function checkLayout(
  name: string,
  { tensors, names, headerBytes, fileBytes }: SafetensorsHeader,
): void {
  const fault: Fault = (message) => new PayloadFault('refuse', `${shown(name)} ${message}`);
  let end = 0;
  let inOrder = true;
  const unknown = new Set<string>();
  for (const tensor of names) {
    const found = tensorIn(tensors, tensor);
    if (found === undefined) throw fault(`describes the tensor ${shown(tensor)} in no known way`);
    const needed = bytesOf(found);
    if (needed === undefined) unknown.add(found.dtype);
    else if (needed !== found.end - found.begin) {
      throw fault(
        `gives ${shown(tensor)} ${counted(found.end - found.begin, 'byte')}, and ${found.dtype} of [${found.shape.slice(0, 8)}] has ${needed}`,
      );
    }
    inOrder &&= found.begin === end;
    end = Math.max(end, found.end);
  }
  const missing = prefixBytes + headerBytes + end - fileBytes;
  if (missing > 0)
    throw fault(
      `is cut: ${counted(missing, 'byte')} of ${prefixBytes + headerBytes + end} ${missing === 1 ? 'is' : 'are'} missing at its end`,
    );
  if (missing < 0) throw fault(`has ${counted(-missing, 'byte')} more than its header describes`);
  if (!inOrder) checkOrder(tensors, fault);
  if (unknown.size > 0) {
    throw new PayloadFault(
      'warn',
      `${shown(name)} has tensors of type ${[...unknown].slice(0, 3).map(shown).join(', ')}, whose size is not known here`,
    );
  }
}

/** Of tensors that the header names in another order than they lie in. */
function checkOrder(tensors: JsonObject, fault: Fault): void {
  const places = Object.keys(tensors)
    .map((name) => ({ name, ...(tensorIn(tensors, name) as Tensor) }))
    .sort((a, b) => a.begin - b.begin || a.end - b.end);
  let end = 0;
  let before = 'the header';
  for (const { name, begin, end: next } of places) {
    if (begin < end)
      throw fault(`lets ${shown(name)} and ${shown(before)} overlap by ${counted(end - begin, 'byte')}`);
    if (begin > end)
      throw fault(`leaves ${counted(begin - end, 'byte')} before ${shown(name)} that no tensor has`);
    end = next;
    before = name;
  }
}

/** Undefined: it is described in no known way. */
export function tensorIn(tensors: JsonObject, name: string): Tensor | undefined {
  const described = tensors[name];
  if (described === null || typeof described !== 'object') return undefined;
  const { dtype, shape, data_offsets: offsets } = described as JsonObject;
  if (typeof dtype !== 'string' || !areCounts(shape) || !areCounts(offsets) || offsets.length !== 2)
    return undefined;
  // Taken apart as a pattern they cost as much as all the rest of this.
  const begin = offsets[0] ?? 0;
  const end = offsets[1] ?? 0;
  return begin > end ? undefined : { dtype, shape, begin, end };
}

/** By its type and dimensions; undefined: the type is not known here. */
function bytesOf({ dtype, shape }: Tensor): number | undefined {
  const bits = bitsOf.get(dtype);
  if (bits === undefined) return undefined;
  let product = bits / 8;
  for (let at = 0; at < shape.length; at += 1) product *= shape[at] ?? 0;
  return product;
}

function areTexts(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    !Array.isArray(value) &&
    Object.values(value as JsonObject).every((text) => typeof text === 'string')
  );
}

function areCounts(value: unknown): value is readonly number[] {
  if (!Array.isArray(value)) return false;
  for (let at = 0; at < value.length; at += 1) {
    if (!Number.isSafeInteger(value[at]) || value[at] < 0) return false;
  }
  return true;
}
