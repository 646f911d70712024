/** A file of a numbered set, e.g. `model-00003-of-00034.safetensors`. */
export interface ShardName {
  /** Before the number and behind the count, the same for all of a set. */
  readonly set: string;
  readonly number: number;
  readonly count: number;
}

/** No set has a million files. */
const numbered = /^(.*?)[-_.]?(\d{1,6})-of-(\d{1,6})((?:\.[^.]*)?\.(?:safetensors|gguf))$/;

export function shardNameOf(name: string): ShardName | undefined {
  const [, before = '', number, count, after = ''] = numbered.exec(name) ?? [];
  return number === undefined
    ? undefined
    : { set: `${before}${after}`, number: Number(number), count: Number(count) };
}

/** The name of another part of the same set. */
export function siblingOf(name: string, number: number): string {
  return name.replace(
    /(\d{1,6})(-of-\d{1,6}(?:\.[^.]*)?\.(?:safetensors|gguf))$/,
    (_whole, digits: string, rest: string) => `${String(number).padStart(digits.length, '0')}${rest}`,
  );
}

/** Names that the sets of these files lack. */
export function missingSiblings(names: readonly string[]): readonly string[] {
  const there = new Set(names);
  const missing = new Set<string>();
  const seen = new Set<string>();
  for (const name of names) {
    const shard = shardNameOf(name);
    if (shard === undefined || seen.has(`${shard.count} ${shard.set}`)) continue;
    seen.add(`${shard.count} ${shard.set}`);
    for (let number = 1; number <= shard.count && missing.size < 10_000; number += 1) {
      const sibling = siblingOf(name, number);
      if (!there.has(sibling)) missing.add(sibling);
    }
  }
  return [...missing].sort();
}
