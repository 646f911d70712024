import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { ConfigurationError } from '../shape/configuration.ts';

/** Far above what people write; a larger file is something else. */
const mostBytes = 16 * 2 ** 20;

/**
 * Undefined: there is no such file.
 *
 * @throws ConfigurationError where it is no file that can be read, or not UTF-8
 */
export function textOf(path: string): string | undefined {
  try {
    const found = statSync(path);
    if (!found.isFile()) throw unreadable(path, 'must be a file', 'take it away, or put the file there');
    if (found.size > mostBytes) throw unreadable(path, 'must be at most 16 MiB', 'it is something else');
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
  } catch (error) {
    return absentOrThrow(error, path);
  }
}

/**
 * Names in a folder, in alphabetical order; none where there is no such folder.
 *
 * @throws ConfigurationError where it cannot be read
 */
export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    return absentOrThrow(error, folder) ?? [];
  }
}

/** Puts a text in the place of a file, or of none: whoever reads there finds the old one or the new one, whole. */
export function replaceText(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

function absentOrThrow(error: unknown, path: string): undefined {
  if (error instanceof ConfigurationError) throw error;
  if (error instanceof TypeError) throw unreadable(path, 'must be UTF-8', 'save it as UTF-8');
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return undefined;
  throw unreadable(path, `must be readable: ${code ?? String(error)}`, 'correct it there');
}

function unreadable(file: string, limit: string, remedy: string): ConfigurationError {
  return new ConfigurationError([{ file, key: '', value: undefined, limit, remedy }]);
}
