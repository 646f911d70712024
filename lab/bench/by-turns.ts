/** Seconds of two acts, done one after the other in each round so that both see the same machine. */
export async function byTurns(
  rounds: number,
  product: () => Promise<void>,
  floor: () => Promise<void>,
): Promise<{ readonly product: readonly number[]; readonly floor: readonly number[] }> {
  const seconds = { product: [] as number[], floor: [] as number[] };
  // The first round fills caches and is not counted.
  for (let round = 0; round <= rounds; round += 1) {
    const [ours, least] = [await secondsOf(product), await secondsOf(floor)];
    if (round === 0) continue;
    seconds.product.push(ours);
    seconds.floor.push(least);
  }
  return seconds;
}

async function secondsOf(act: () => Promise<void>): Promise<number> {
  const begun = performance.now();
  await act();
  return (performance.now() - begun) / 1000;
}
