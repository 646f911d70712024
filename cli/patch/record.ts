import { parsePatchFile } from '../../shape/patches.ts';
import { sha256, shortId } from '../../shape/release.ts';
import { UsageError } from '../usage.ts';
import { readPatchFolder, writePatches } from './folder.ts';
import { Refusal, toldAsExitCode } from './refusal.ts';

/**
 * Accepts patches as they are now: records their hashes.
 *
 * @returns 1 where one of them is no patch, which is said; nothing is recorded then
 */
export function record(folder: string, names: readonly string[]): Promise<number> {
  return toldAsExitCode(() => recordAll(folder, names));
}

function recordAll(folder: string, names: readonly string[]): number {
  const { files, recorded } = readPatchFolder(folder);
  const writes = names.map((given) => {
    const plain = given.replace(/^patches\//, '');
    const name = files.has(plain) ? plain : `${plain.replace(/\.patch$/, '')}.patch`;
    const content = files.get(name);
    if (content === undefined) throw new UsageError(`patches/${name}: there is no such file`);
    return { name, content, replaces: content };
  });
  const faults = writes.flatMap(({ name, content }) =>
    (parsePatchFile(content).faults ?? []).map(
      ({ limit, remedy }) => `patches/${name}: ${limit}\n    ${remedy}`,
    ),
  );
  if (faults.length > 0) throw new Refusal(faults.join('\n'));
  const changed = writes.filter(({ name, content }) => recorded.get(name) !== sha256(content));
  if (changed.length > 0) writePatches(folder, changed);
  for (const { name, content } of writes) {
    const isNew = changed.some((write) => write.name === name);
    const was = recorded.get(name);
    const before = was === undefined ? '' : `, before ${shortId(was)}…`;
    const text = isNew ? `is recorded: ${shortId(sha256(content))}…${before}` : 'is recorded as it is';
    process.stdout.write(`patches/${name} ${text}\n`);
  }
  process.stdout.write('whether they apply: slot patch check\n');
  return 0;
}
