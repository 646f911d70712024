import { basename } from 'node:path/posix';
import { payloadFileNameSchema } from '../../shape/payload-manifest.ts';
import type { FileStatus, Outside } from '../outside.ts';

/** A file of a payload, or of what else is mounted. */
export interface TreeFile {
  /** Relative to the root; of a root that is a file itself, its own name. */
  readonly name: string;
  readonly path: string;
  readonly status: FileStatus;
}

/**
 * All files below a root, in code-point order of their names. Names with a dot in front are left out, with all that is
 * below them: no engine reads them, and tools keep their own records there (`.cache`, `.git`), which change.
 *
 * @throws Error with everything that can be no file of a payload
 */
export async function payloadTree(outside: Outside, root: string): Promise<readonly TreeFile[]> {
  const files: TreeFile[] = [];
  const odd: string[] = [];
  await look(outside, { name: '', path: root }, files, odd);
  if (odd.length > 0) throw new Error(odd.join('; '));
  if (files.length === 0) throw new Error(`${root} has no files`);
  return files.sort((one, other) => (one.name < other.name ? -1 : 1));
}

export function isHidden(name: string): boolean {
  return name.split('/').some((part) => part.startsWith('.'));
}

async function look(
  outside: Outside,
  { name, path }: { readonly name: string; readonly path: string },
  files: TreeFile[],
  odd: string[],
): Promise<void> {
  try {
    const status = await outside.statusOf(path);
    if (status === undefined) {
      const link = await outside.readLink(path);
      odd.push(`${path} ${link === undefined ? 'is not there' : `is a link to ${link}, where nothing is`}`);
    } else if (status.kind === 'file') {
      const file = { name: name === '' ? basename(path) : name, path, status };
      const named = payloadFileNameSchema.safeParse(file.name);
      if (named.success) files.push(file);
      else odd.push(`${JSON.stringify(path)} ${named.error.issues[0]?.message}`);
    } else if (status.kind === 'other') {
      odd.push(`${path} is neither file nor folder`);
    } else if (name !== '' && (await outside.readLink(path)) !== undefined) {
      odd.push(`${path} is a link to a folder, and links may go round: put the folder there, or mount it`);
    } else {
      for (const entry of await outside.list(path)) {
        if (isHidden(entry)) continue;
        const inner = name === '' ? entry : `${name}/${entry}`;
        await look(outside, { name: inner, path: `${path}/${entry}` }, files, odd);
      }
    }
  } catch (error) {
    odd.push(`${path} cannot be looked at: ${(error as Error).message}`);
  }
}
