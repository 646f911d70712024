import { shorten } from '../../shape/problems.ts';
import { PayloadFault } from './payload-fault.ts';
import { impostorIn, objectIn, type PayloadReader } from './read-file.ts';

export interface Tensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: number;
}

export interface SafetensorsHeader {
  readonly tensors: ReadonlyMap<string, Tensor>;
  /** What the file must have to hold all of its tensors. */
  readonly neededBytes: number;
  readonly fileBytes: number;
}

/** The format's own limit of a header is 100 MB; a quick look reads less. */
const quickHeaderBytes = 8 * 2 ** 20;

/** The length of the header, little-endian, before it. */
const prefixBytes = 8;

/**
 * The names and places of a file's tensors. No length in it is trusted: nothing is read or allocated by one that the
 * file itself cannot hold.
 *
 * @throws PayloadFault where it is no whole header, or there is no such file
 */
export async function safetensorsHeader(
  reader: PayloadReader,
  name: string,
  largestHeader = quickHeaderBytes,
): Promise<SafetensorsHeader> {
  const prefix = await reader.part(name, 0, 100);
  if (prefix === undefined) throw new PayloadFault('refuse', `${name} is not there`);
  const { bytes, fileBytes } = prefix;
  const impostor = impostorIn(bytes);
  if (impostor !== undefined) throw new PayloadFault('refuse', `${name} is ${impostor}`);
  if (bytes.length < prefixBytes) {
    throw new PayloadFault('refuse', `${name} has ${fileBytes} bytes, too few for a header`);
  }
  const length = Buffer.from(bytes).readBigUInt64LE(0);
  if (length > BigInt(fileBytes - prefixBytes)) {
    throw new PayloadFault(
      'refuse',
      `${name} says that its header has ${length} bytes; the file has ${fileBytes}`,
    );
  }
  if (length > BigInt(largestHeader)) {
    throw new PayloadFault(
      'note',
      `${name} has a header of ${length} bytes, more than are read in a quick look`,
    );
  }
  const headerBytes = Number(length);
  const header = await reader.part(name, prefixBytes, headerBytes);
  if (header?.bytes.length !== headerBytes) {
    throw new PayloadFault('refuse', `${name} was cut while it was read`);
  }
  const tensors = tensorsIn(name, objectIn(`the header of ${name}`, header.bytes));
  let dataBytes = 0;
  for (const { end } of tensors.values()) dataBytes = Math.max(dataBytes, end);
  return { tensors, fileBytes, neededBytes: prefixBytes + headerBytes + dataBytes };
}

function tensorsIn(
  name: string,
  header: Readonly<Record<string, unknown>>,
): ReadonlyMap<string, Tensor & { readonly end: number }> {
  return new Map(
    Object.entries(header)
      .filter(([tensor]) => tensor !== '__metadata__')
      .map(([tensor, described]) => {
        const found = tensorOf(described);
        if (found !== undefined) return [tensor, found];
        throw new PayloadFault(
          'refuse',
          `the header of ${name} describes ${shorten(JSON.stringify(tensor))} in no known way`,
        );
      }),
  );
}

function tensorOf(described: unknown): (Tensor & { readonly end: number }) | undefined {
  if (described === null || typeof described !== 'object') return undefined;
  const { dtype, shape, data_offsets: offsets } = described as Readonly<Record<string, unknown>>;
  if (typeof dtype !== 'string' || !/^\w{1,20}$/.test(dtype) || !isCounts(shape) || !isCounts(offsets))
    return undefined;
  const [begin, end, ...more] = offsets;
  if (begin === undefined || end === undefined || more.length > 0 || begin > end) return undefined;
  return { dtype, shape, bytes: end - begin, end };
}

function isCounts(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((part) => Number.isSafeInteger(part) && part >= 0);
}
