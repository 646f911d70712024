import type { PayloadFolder } from './folder.ts';
import { PayloadFault } from './payload-fault.ts';
import { counted, quoted, shown } from './wording.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * A JSON document of a payload.
 *
 * @throws PayloadFault where it is no file, no JSON object, or larger than `limit` bytes
 */
export async function jsonOf(folder: PayloadFolder, name: string, limit: number): Promise<JsonObject> {
  const part = await folder.part(name, 0, limit);
  if (part.fileBytes > limit) {
    const { name: look, beyond } = folder.extent;
    throw new PayloadFault(
      beyond,
      `${shown(name)} has ${counted(part.fileBytes, 'byte')}, more than ${look} reads`,
    );
  }
  const document = objectIn(shown(name), part.bytes, pythonJson);
  const complaint = serverComplaintIn(document);
  if (complaint !== undefined) throw new PayloadFault('refuse', `${shown(name)} is ${complaint}`);
  return document;
}

/**
 * @param parse of the text; strict JSON unless given
 * @throws PayloadFault where the bytes are no JSON object; it says what they are instead, if that can be seen
 */
export function objectIn(
  what: string,
  bytes: Buffer,
  parse: (text: string) => unknown = JSON.parse,
): JsonObject {
  const impostor = impostorIn(bytes, 'JSON');
  if (impostor !== undefined) throw new PayloadFault('refuse', `${what} is ${impostor}`);
  if (bytes.toString('latin1', 0, 3) === '\xef\xbb\xbf') {
    throw new PayloadFault(
      'refuse',
      `${what} begins with a byte order mark, which no engine reads: save it without`,
    );
  }
  if (isDense(bytes)) throw new PayloadFault('refuse', `${what} is no JSON of a model: it is all brackets`);
  let parsed: unknown;
  try {
    parsed = parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new PayloadFault('refuse', `${what} is no JSON`);
  }
  if (parsed !== null && typeof parsed === 'object' && !Array.isArray(parsed)) return parsed as JsonObject;
  throw new PayloadFault('refuse', `${what} is no JSON object`);
}

/** Python writes and reads numbers that JSON has not: configurations of state space models say `[0.0, Infinity]`. */
function pythonJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const words = /"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g;
    return JSON.parse(text.replaceAll(words, (word) => (word.startsWith('"') ? word : 'null')));
  }
}

/** A document of fewer bytes may be what it likes: parsed, it is not large. */
const looseBytes = 2 ** 20;

/** Of a value in brackets: the shortest description of a tensor has three such values in 51 bytes. */
const leastBytesEach = 16;

/** Whether it would take a hundred times its own size when it is parsed. */
function isDense(bytes: Buffer): boolean {
  if (bytes.length < looseBytes) return false;
  let left = bytes.length / leastBytesEach;
  for (const opening of ['[', '{']) {
    for (let at = bytes.indexOf(opening); at !== -1; at = bytes.indexOf(opening, at + 1)) {
      left -= 1;
      if (left < 0) return true;
    }
  }
  return false;
}

const begins: readonly (readonly [begin: RegExp, what: string])[] = [
  [/^version https:\/\/(?:git-lfs|hawser)/, 'a pointer of git-lfs: fetch the file itself'],
  [/^(?:\.\.\/)*\/?(?:\.git\/)?annex\/objects\//, 'a pointer of git-annex: fetch the file itself'],
  [/^\ufeff?<(?:!doctype|html|head|body|script|!--)/i, 'a web page: fetch the file itself'],
];

const xml = /^\ufeff?<(?:\?xml|[a-z]+[ >])/i;

/** Of binary formats. */
const signatures: readonly (readonly [signature: string, what: string])[] = [
  ['PK\x03\x04', 'a ZIP archive, as PyTorch writes its own files'],
  ['\x1f\x8b', 'compressed by gzip'],
  ['\x28\xb5\x2f\xfd', 'compressed by zstd'],
  ['\xfd7zXZ\0', 'compressed by xz'],
  ['\x80\x02}', 'a pickle of Python'],
];

/**
 * What downloads and copies leave behind in place of a file; undefined: nothing of that kind is seen.
 *
 * @param bytes the file's beginning
 */
export function impostorIn(bytes: Buffer, wanted: 'JSON' | 'weights' | 'text'): string | undefined {
  if (bytes.length === 0) return 'empty';
  const beginning = bytes.subarray(0, 200);
  const text = beginning.toString('utf8').trimStart();
  const known = begins.find(([begin]) => begin.test(text))?.[1];
  if (known !== undefined) return known;
  // A chat template may begin so.
  if (wanted !== 'text' && xml.test(text))
    return "a document in XML, as servers' errors are: fetch the file itself";
  if (beginning.length >= 8 && beginning.every((byte) => byte === 0)) {
    return 'zeros where it begins: its space was reserved and never filled';
  }
  const binary = beginning.toString('latin1');
  const signature = signatures.find(([begin]) => binary.startsWith(begin))?.[1];
  if (signature !== undefined) return signature;
  if (wanted !== 'weights') return undefined;
  const signs = beginning
    .subarray(0, 16)
    .every((byte) => (byte >= 0x20 && byte < 0x7f) || byte === 9 || byte === 10 || byte === 13);
  if (!signs || binary.startsWith('GGUF')) return undefined;
  return /^[[{]/.test(text)
    ? `a document in JSON, as servers' errors are, which begins ${quoted(text.slice(0, 60))}: fetch the file itself`
    : `a text, which begins ${quoted(text.slice(0, 60))}: fetch the file itself`;
}

/** Servers answer errors in JSON, and downloads keep them under the file's name. */
function serverComplaintIn(document: JsonObject): string | undefined {
  const said = ['error', 'errors', 'detail', 'message'].find((key) => Object.hasOwn(document, key));
  if (said === undefined || Object.keys(document).length > 6) return undefined;
  const words = document[said];
  return `a server's answer, ${quoted(typeof words === 'string' ? words : JSON.stringify(words))}: fetch the file itself`;
}
