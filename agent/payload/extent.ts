import type { Finding } from '../../shape/inspection.ts';

/** How far a look at a payload goes: in time and memory it is bounded by these, whatever lies there. */
export interface Extent {
  /** Ends `… is more than … reads`. */
  readonly name: string;
  /** After which nothing further is begun. */
  readonly seconds: number;
  readonly configBytes: number;
  readonly indexBytes: number;
  /** Of one file. */
  readonly headerBytes: number;
  readonly allHeaderBytes: number;
  /** What it is to be more than this: an inspection says it, a preflight does not vouch for it. */
  readonly beyond: Finding['severity'];
}

const mebibyte = 2 ** 20;

/** Of an inspection. GLM's index of 113,074 tensors has about 10 MiB, all its headers together about 15 MiB. */
export const quickLook: Extent = {
  name: 'a quick look',
  seconds: 2,
  configBytes: 16 * mebibyte,
  indexBytes: 48 * mebibyte,
  headerBytes: 16 * mebibyte,
  allHeaderBytes: 128 * mebibyte,
  beyond: 'note',
};

/** Before a cutover. A hundred thousand tensors take 15 MiB; what is parsed takes several times its bytes of memory. */
export const wholeInventory: Extent = {
  name: 'an inventory',
  seconds: 120,
  configBytes: 16 * mebibyte,
  indexBytes: 64 * mebibyte,
  headerBytes: 64 * mebibyte,
  allHeaderBytes: 256 * mebibyte,
  beyond: 'refuse',
};
