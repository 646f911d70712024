import * as z from 'zod';
import { jsonOrUndefined } from '../../shape/json.ts';
import { namesOf } from '../../shape/names.ts';
import { sha256, shortId } from '../../shape/release.ts';
import type { FileStatus, Outside } from '../outside.ts';

const memoSchema = z.strictObject({
  version: z.literal(1),
  root: z.string(),
  /** By the file's name. */
  files: z.record(
    z.string(),
    z.strictObject({
      device: z.string(),
      inode: z.string(),
      size: z.int(),
      modified: z.string(),
      changed: z.string(),
      sha256: z.string(),
    }),
  ),
});

/** A file that changed so recently could change again within one tick of the kernel's clock, unseen. */
const settledNanoseconds = 100_000_000n;

/** Names a payload's root in names of files and units. */
export function rootKey(root: string): string {
  return shortId(sha256(root));
}

/**
 * What the files of one payload were found to hash to, each as long as the kernel says that it is the same file and was
 * not touched. Whoever replaces a file and sets its modification time back still changes the time of its change.
 */
export class HashMemo {
  readonly #outside: Outside;
  readonly #folder: string;
  readonly #memo: z.infer<typeof memoSchema>;

  private constructor(outside: Outside, folder: string, memo: z.infer<typeof memoSchema>) {
    this.#outside = outside;
    this.#folder = folder;
    this.#memo = memo;
  }

  /** One that is damaged, or cannot be read, remembers nothing: it costs another reading and no more. */
  static async open(outside: Outside, service: string, root: string): Promise<HashMemo> {
    const folder = `${namesOf(service).stateFolder}/hashes`;
    const text = await outside.readText(`${folder}/${rootKey(root)}.json`).catch(() => undefined);
    const found = memoSchema.safeParse(jsonOrUndefined(text));
    const empty = { version: 1 as const, root, files: {} };
    return new HashMemo(outside, folder, found.success && found.data.root === root ? found.data : empty);
  }

  /** Of the file as it stands; undefined: it was not read since it became what it is. */
  sha256Of(name: string, status: FileStatus): string | undefined {
    if (!Object.hasOwn(this.#memo.files, name)) return undefined;
    const known = this.#memo.files[name];
    return known !== undefined && isSameFile(known, status) ? known.sha256 : undefined;
  }

  /** `readAt`: when the reading began, in milliseconds since 1970. */
  remember(name: string, { kind: _, ...status }: FileStatus, sha256: string, readAt: number): void {
    if (BigInt(readAt) * 1_000_000n - BigInt(status.changed) < settledNanoseconds) return;
    this.#memo.files[name] = { ...status, sha256 };
  }

  /** After a power cut the former or the present memo is there. */
  async save(): Promise<void> {
    await this.#outside.makeFolder(this.#folder);
    await this.#outside.writeDurably(
      `${this.#folder}/${rootKey(this.#memo.root)}.json`,
      `${JSON.stringify(this.#memo)}\n`,
    );
  }
}

type Identity = Omit<FileStatus, 'kind'>;

/** Whether it is the same file with the same content, as far as the kernel can tell. */
export function isSameFile(one: Identity, other: Identity): boolean {
  return (
    one.device === other.device &&
    one.inode === other.inode &&
    one.size === other.size &&
    one.modified === other.modified &&
    one.changed === other.changed
  );
}
