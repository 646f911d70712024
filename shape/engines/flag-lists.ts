import type { Flag } from './command-line.ts';

/** Flags by what they take; other spellings of one behind its name, as in `--tensor-parallel-size -tp`. */
export type FlagLists = Partial<Record<Flag['takes'], readonly string[]>>;

/** The flags of lists that are written as compactly as a person can check them. */
export function flagsOf(lists: FlagLists, repeatable: readonly string[] = []): readonly Flag[] {
  return (Object.keys(lists) as Flag['takes'][]).flatMap((takes) =>
    (lists[takes] ?? []).map((spellings): Flag => {
      const [name = '', ...aliases] = spellings.split(' ');
      return { name, aliases, takes, ...(repeatable.includes(name) && { repeats: true }) };
    }),
  );
}
