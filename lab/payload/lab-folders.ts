import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { writePayloads } from './folders.ts';

/**
 * Script that makes payloads and state directories as the shapes name them, below the host's home of models. It carries
 * them as an archive of sparse files: a host has no program yet that could make them.
 */
export async function labFolders(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'slot-lab-payloads-'));
  try {
    await writePayloads(folder);
    const names = await readdir(folder);
    const archive = await execa(
      'tar',
      ['--create', '--sparse', '--gzip', `--directory=${folder}`, ...names],
      { encoding: 'base64' },
    );
    return `
set -eu
models=/home/dank/models
mkdir -p "$models" /home/dank/r9v-state/q8xl /home/dank/r9v-state/uncensored
base64 --decode <<'ARCHIVE' | tar --extract --gzip --no-same-owner --directory="$models"
${archive.stdout.replaceAll(/.{1000}/g, '$&\n')}
ARCHIVE
echo kept >/home/dank/r9v-state/q8xl/state
chown -R dank:dank /home/dank/models /home/dank/r9v-state
`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
