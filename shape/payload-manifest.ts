import { createHash } from 'node:crypto';
import { basename } from 'node:path/posix';
import * as z from 'zod';

/** A path below a payload's folder that can stand in a line of `sha256sum`, which escapes the others. */
export const payloadFileNameSchema = z
  .string()
  .refine(
    (name) =>
      name.isWellFormed() &&
      !/[\p{Cc}\\]/u.test(name) &&
      name.split('/').every((part) => part !== '' && part !== '.' && part !== '..'),
    'must be a path below the folder without "..", backslash and control characters',
  );

const sealedFileSchema = z.strictObject({
  /** Relative to the payload's folder. */
  name: payloadFileNameSchema,
  /** In bytes. */
  size: z.int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits'),
});
export type SealedFile = z.infer<typeof sealedFileSchema>;

/** All files of a payload, each once and in code-point order of their names: the same payload gives the same manifest. */
export const payloadManifestSchema = z
  .array(sealedFileSchema)
  .min(1)
  .refine(
    (files) => files.every(({ name }, index) => index === 0 || (files[index - 1]?.name ?? '') < name),
    'must name each file once, in code-point order',
  );
export type PayloadManifest = z.infer<typeof payloadManifestSchema>;

/** Folder of manifests beside a host's file. */
export const payloadsFolder = 'payloads';

/** File with the manifest of what lies at a path of the host, a payload's folder or what is mounted beside it. */
export function manifestFile(root: string): string {
  return `${payloadsFolder}/${basename(root)}.sha256`;
}

const header = '# Payload manifest, form 1. In the payload folder: sha256sum --check --quiet THIS_FILE';

/**
 * The manifest's text, and its canonical one: what `sha256sum` prints, which everybody can check without this project,
 * with the size of each file in a comment before it, since `sha256sum` has no place for it.
 */
export function manifestText(manifest: PayloadManifest): string {
  return `${header}\n${manifest.map(({ name, size, sha256 }) => `# ${size} bytes\n${sha256}  ${name}\n`).join('')}`;
}

/** SHA-256 of the canonical text: the same files give the same id. */
export function manifestIdOf(manifest: PayloadManifest): string {
  return createHash('sha256').update(manifestText(manifest)).digest('hex');
}

/**
 * Reads what {@link manifestText} writes, in any order and with any line ends.
 *
 * @throws Error that names the line where it is something else
 */
export function manifestFromText(text: string): PayloadManifest {
  const files: SealedFile[] = [];
  let size: number | undefined;
  const fail = (line: number, what: string): never => {
    throw new Error(`line ${line}: ${what}`);
  };
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const number = index + 1;
    const [, comment] = /^# (\d{1,16}) bytes$/.exec(line) ?? [];
    if (comment !== undefined) {
      if (size !== undefined) fail(number, 'a size without a file');
      size = Number(comment);
    } else if (line !== '' && !line.startsWith('#')) {
      const [, sha256 = '', name = ''] = /^([0-9a-f]{64}) [ *](.+)$/.exec(line) ?? [];
      const parsed = sealedFileSchema.safeParse({ name, size, sha256 });
      if (size === undefined) fail(number, 'no line "# <size> bytes" before the file');
      if (!parsed.success) fail(number, parsed.error.issues[0]?.message ?? 'no line of sha256sum');
      if (files.some((other) => other.name === name)) fail(number, `${name} is there twice`);
      if (parsed.success) files.push(parsed.data);
      size = undefined;
    }
  }
  if (size !== undefined) fail(text.split('\n').length, 'a size without a file');
  if (files.length === 0) fail(1, 'no file is named');
  return inOrder(files);
}

export function inOrder(files: readonly SealedFile[]): PayloadManifest {
  return files.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}
