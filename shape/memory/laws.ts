import type { MemoryRecord } from '../model.ts';

/** Bytes by a number of tokens. */
export type Law = MemoryRecord['reserve'];

export function lawAt({ bytesPerToken, fixed = 0 }: Law, tokens: number): number {
  return bytesPerToken * tokens + fixed;
}

/** `13,600 B × tokens + 0.05 GiB` is written by `lawText`; this is the least number of tokens at which `need` fits. */
export function fitsFrom(need: Law, cap: Law): number | undefined {
  const steeper = cap.bytesPerToken - need.bytesPerToken;
  const missing = (need.fixed ?? 0) - (cap.fixed ?? 0);
  if (missing <= 0) return steeper >= 0 ? 0 : undefined;
  return steeper > 0 ? Math.ceil(missing / steeper) : undefined;
}

/**
 * Host memory that one rank pins for its experts. A block holds the slots of `expertsPerBlock` experts, the last one
 * those that are left; PyTorch's own host allocator rounds each block up to a power of two (pytorch/pytorch#150517:
 * 20.4 GiB took 32 GiB), an allocator that pins what it is asked for does not.
 */
export function pinnedBytes(
  experts: number,
  slotBytes: number,
  {
    roundedToPowerOfTwo,
    expertsPerBlock,
  }: Pick<MemoryRecord['pinned'], 'roundedToPowerOfTwo' | 'expertsPerBlock'>,
): number {
  if (!roundedToPowerOfTwo) return experts * slotBytes;
  const blocks = Math.floor(experts / expertsPerBlock);
  const rest = experts % expertsPerBlock;
  return blocks * powerOfTwoFrom(expertsPerBlock * slotBytes) + powerOfTwoFrom(rest * slotBytes);
}

/** The least power of two that is not less; 0 for 0. */
function powerOfTwoFrom(bytes: number): number {
  if (bytes <= 0) return 0;
  let power = 1;
  while (power < bytes) power *= 2;
  return power;
}
