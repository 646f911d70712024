import { sizeText } from '../../shape/memory/amounts.ts';
import type { ExpectedPayload } from '../../shape/payload-expectation.ts';
import type { Findings } from './findings.ts';
import { counted, shown } from './wording.ts';

/** What is counted in a folder of weights. */
export interface Contents {
  readonly shards: number;
  readonly extraFiles: readonly string[];
  /** Undefined: not all files were looked at. */
  readonly tensors: number | undefined;
  readonly bytes: number;
}

/** How far a rounded size may be off, as a part of it. */
const sizeTolerance = 0.03;

/** Tells where a folder is another than the one on record. */
export function compareWithRecord(contents: Contents, expected: ExpectedPayload, findings: Findings): void {
  const counts = [
    ['files of the numbered set', contents.shards, expected.shards],
    ['tensors', contents.tensors, expected.tensors],
    ['bytes of weights', contents.bytes, expected.bytes],
  ] as const;
  for (const [what, count, recorded] of counts) {
    if (recorded !== undefined && count !== undefined && recorded !== count) {
      findings.add('refuse', `it has ${grouped(count)} ${what}, the shape expects ${grouped(recorded)}`);
    }
  }
  const { extraFiles } = contents;
  if (expected.extraFiles !== undefined && expected.extraFiles !== extraFiles.length) {
    const names = extraFiles.length === 0 ? '' : ` (${extraFiles.slice(0, 4).map(shown).join(', ')})`;
    findings.add(
      'refuse',
      `it has ${counted(extraFiles.length, 'safetensors file')} beside the numbered set${names}, the shape expects ${expected.extraFiles}`,
    );
  }
  const { sizeBytes } = expected;
  if (sizeBytes !== undefined && Math.abs(contents.bytes - sizeBytes) > sizeTolerance * sizeBytes) {
    findings.add(
      'warn',
      `its weights have ${sizeText(contents.bytes)}, the shape expects about ${sizeText(sizeBytes)}`,
    );
  }
}

/** @param bytes of the file; undefined: there is none */
export function compareFile(
  name: string,
  bytes: number | undefined,
  recorded: number | undefined,
  findings: Findings,
): void {
  if (bytes === undefined) findings.add('refuse', `${shown(name)} is not there, and the shape expects it`);
  else if (recorded !== undefined && bytes !== recorded) {
    const difference = counted(Math.abs(recorded - bytes), 'byte');
    findings.add(
      'refuse',
      `${shown(name)} has ${grouped(bytes)} bytes, the shape expects ${grouped(recorded)}: ${difference} ${bytes < recorded ? 'missing' : 'too many'}`,
    );
  }
}

/** `34 files, 2 beside them, 113,074 tensors, 170.10 GiB`. */
export function contentsText({ shards, extraFiles, tensors, bytes }: Contents): string {
  const extra = extraFiles.length === 0 ? '' : ` and ${counted(extraFiles.length, 'extra file')}`;
  const ofTensors = tensors === undefined ? 'tensors not counted' : counted(tensors, 'tensor');
  return `${counted(shards, 'file')}${extra}, ${ofTensors}, ${sizeText(bytes)}`;
}

function grouped(count: number): string {
  return String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
}
