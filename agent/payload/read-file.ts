import type { FilePart, Outside } from '../outside.ts';
import { PayloadFault } from './payload-fault.ts';

/** Seconds in which the quick look at a payload begins no further reading. */
const quickLookSeconds = 0.5;

/** The files of a payload, read in parts and for a short time only. */
export interface PayloadReader {
  readonly folder: string;
  /**
   * Undefined: there is no such file.
   *
   * @throws PayloadFault
   */
  part(name: string, offset: number, length: number): Promise<FilePart | undefined>;
  /** Names in the folder, sorted. */
  names(): Promise<readonly string[]>;
}

export function payloadReader(outside: Outside, folder: string): PayloadReader {
  const end = outside.monotonicSeconds() + quickLookSeconds;
  return {
    folder,
    async part(name, offset, length) {
      if (outside.monotonicSeconds() > end) {
        throw new PayloadFault('note', `${name} was not looked at: the quick look was over`);
      }
      try {
        return await outside.readPart(`${folder}/${name}`, offset, length);
      } catch (error) {
        throw new PayloadFault('refuse', `${name} cannot be read: ${(error as Error).message}`);
      }
    },
    names: () => outside.list(folder),
  };
}

/**
 * A JSON document of a payload. Undefined: there is no such file.
 *
 * @throws PayloadFault where it is no JSON object, or larger than `limit` bytes
 */
export async function jsonOf(
  reader: PayloadReader,
  name: string,
  limit: number,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const part = await reader.part(name, 0, limit);
  if (part === undefined) return undefined;
  if (part.fileBytes > limit) {
    throw new PayloadFault('note', `${name} has ${part.fileBytes} bytes, more than are read in a quick look`);
  }
  return objectIn(name, part.bytes);
}

/** @throws PayloadFault where the bytes are no JSON object; it says what they are instead, if that can be seen */
export function objectIn(name: string, bytes: Uint8Array): Readonly<Record<string, unknown>> {
  const impostor = impostorIn(bytes);
  if (impostor !== undefined) throw new PayloadFault('refuse', `${name} is ${impostor}`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new PayloadFault('refuse', `${name} is no JSON${bytes.length === 0 ? ': it is empty' : ''}`);
  }
  if (parsed !== null && typeof parsed === 'object' && !Array.isArray(parsed)) {
    return parsed as Readonly<Record<string, unknown>>;
  }
  throw new PayloadFault('refuse', `${name} is no JSON object`);
}

/** What downloads leave behind in place of a file. */
export function impostorIn(bytes: Uint8Array): string | undefined {
  const beginning = Buffer.from(bytes.subarray(0, 100)).toString('latin1').trimStart().toLowerCase();
  if (beginning.startsWith('version https://git-lfs')) return 'a pointer of git-lfs: fetch the file itself';
  if (/^<(?:!doctype|html|head|\?xml)/.test(beginning)) return 'a web page: fetch the file itself';
  return undefined;
}
