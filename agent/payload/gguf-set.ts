import type { Findings } from './findings.ts';
import { insteadOfFile, type PayloadFolder } from './folder.ts';
import { type GgufHeader, ggufHeader } from './gguf.ts';
import { LookIsOver, PayloadFault } from './payload-fault.ts';
import { shardNameOf, siblingOf } from './shard-names.ts';
import { counted, listed, shown } from './wording.ts';

export interface GgufSet {
  readonly files: readonly string[];
  /** Undefined: not all parts were looked at. */
  readonly tensors: number | undefined;
  readonly bytes: number;
  /** Of the part that the engine is pointed at. */
  readonly first: GgufHeader | undefined;
}

/** More parts than anybody has made. */
const mostParts = 1000;

/** As llama.cpp composes the names of the other parts. */
const splitName = /-\d{5}-of-\d{5}\.gguf$/;
/** Pieces of one file that was cut by bytes. */
const pieceName = /\.gguf(?:\.|-)?(?:part-?\d+(?:-?of-?\d+)?|split-?[a-z]+|a[a-z]|\d{2,3})$/i;

export function isPiece(name: string): boolean {
  return pieceName.test(name);
}

/**
 * The parts of a GGUF model, from the file that the engine is pointed at.
 *
 * @param entry name in the folder
 */
export async function ggufSet(
  folder: PayloadFolder,
  entry: string,
  findings: Findings,
): Promise<GgufSet | undefined> {
  const kind = folder.entries.get(entry)?.kind ?? 'absent';
  if (isPiece(entry)) {
    findings.add(
      'refuse',
      `${shown(entry)} is a piece of a file that was cut by bytes, no part of a split: join the pieces in their order with cat, and name the whole file`,
    );
    return undefined;
  }
  if (kind !== 'file') {
    const pieces = [...folder.entries.keys()].filter((name) => isPiece(name) && name.startsWith(entry));
    const hint =
      pieces.length > 0
        ? `; here are pieces of it, ${listed(pieces)}: join them in their order with cat`
        : '';
    if (kind === 'absent' || kind === 'folder' || kind === 'other')
      findings.add('refuse', `${shown(entry)} ${insteadOfFile(kind)}${hint}`);
    return undefined;
  }
  const first = await findings.attempt(() => ggufHeader(folder, entry));
  const single = {
    files: [entry],
    tensors: first?.tensors,
    bytes: folder.entries.get(entry)?.bytes ?? 0,
    first,
  };
  const part = shardNameOf(entry);
  if (part === undefined || !splitName.test(entry)) {
    if (first !== undefined && first.splitCount > 1) {
      findings.add(
        'refuse',
        `${shown(entry)} is part ${first.splitNumber + 1} of a split of ${first.splitCount}, and its name does not say so: llama.cpp finds the others by …-00001-of-${String(first.splitCount).padStart(5, '0')}.gguf`,
      );
    }
    return single;
  }
  if (part.count > mostParts) {
    findings.add('refuse', `${shown(entry)} is of ${counted(part.count, 'part')}, more than ${mostParts}`);
    return single;
  }
  return splitSet(folder, entry, first, findings);
}

async function splitSet(
  folder: PayloadFolder,
  entry: string,
  entryHeader: GgufHeader | undefined,
  findings: Findings,
): Promise<GgufSet> {
  const { number = 1, count = 1 } = shardNameOf(entry) ?? {};
  const parts = Array.from({ length: count }, (_, index) => siblingOf(entry, index + 1));
  const firstPart = parts[0] ?? entry;
  if (number !== 1)
    findings.add(
      'refuse',
      `the engine is pointed at ${shown(entry)}, part ${number}: point it at the first, ${shown(firstPart)}`,
    );
  const missing = parts.filter((name) => (folder.entries.get(name)?.kind ?? 'absent') === 'absent');
  if (entryHeader !== undefined && entryHeader.splitCount === 0) {
    findings.add(
      'refuse',
      `${shown(entry)} is named as a part of ${count} and its header knows of no split: llama.cpp refuses that; give a single file a name without -00001-of-…`,
    );
    return { files: [entry], tensors: entryHeader.tensors, bytes: entryHeader.fileBytes, first: entryHeader };
  }
  if (missing.length > 0) {
    findings.add(
      'refuse',
      `${counted(missing.length, 'part')} of ${count} ${missing.length === 1 ? 'is' : 'are'} missing: ${listed(missing)}`,
    );
  }
  let tensors = 0;
  let bytes = 0;
  let whole = missing.length === 0;
  let areAllRead = true;
  let first = entryHeader;
  for (const [index, name] of parts.entries()) {
    const entryOf = folder.entries.get(name);
    if (entryOf === undefined || entryOf.kind === 'absent') continue;
    const header = await partHeader(folder, name, name === entry ? entryHeader : undefined, findings);
    if (header === 'over') return { files: parts, tensors: undefined, bytes, first };
    if (header === undefined) {
      whole = false;
      areAllRead = false;
      continue;
    }
    if (index === 0) first = header;
    tensors += header.tensors;
    bytes += header.fileBytes;
    if (header.splitCount !== count || header.splitNumber !== index) {
      whole = false;
      findings.add(
        'refuse',
        `${shown(name)} is by its header part ${header.splitNumber + 1} of ${header.splitCount}: it was renamed, or is of another split`,
      );
    }
  }
  if (whole && first?.splitTensors !== undefined && first.splitTensors !== tensors) {
    findings.add(
      'refuse',
      `${shown(firstPart)} counts ${counted(first.splitTensors, 'tensor')} in all parts, and they hold ${tensors}`,
    );
  }
  return { files: parts, tensors: areAllRead ? tensors : undefined, bytes, first };
}

async function partHeader(
  folder: PayloadFolder,
  name: string,
  known: GgufHeader | undefined,
  findings: Findings,
): Promise<GgufHeader | undefined | 'over'> {
  if (known !== undefined) return known;
  try {
    return await ggufHeader(folder, name);
  } catch (error) {
    if (!(error instanceof PayloadFault)) throw error;
    findings.add(error.severity, error.message);
    return error instanceof LookIsOver ? 'over' : undefined;
  }
}
