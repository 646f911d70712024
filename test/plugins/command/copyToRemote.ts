import { randomBytes } from 'node:crypto';
import { chmodSync, copyFileSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Resource, Status, Values } from '../provider.ts';
import { type Connection, overSsh, withDefaults } from '../ssh.ts';
import { follow } from './run.ts';

/** An asset or an archive, as the engine hands it over. */
interface Source {
  hash: string;
  path?: string;
  text?: string;
  uri?: string;
  assets?: Record<string, Source>;
}
interface Inputs {
  connection: Connection;
  source: Source;
  remotePath: string;
}

export const copyToRemote: Resource = {
  replacedBy: ['triggers'],
  determines: [],
  check: (inputs) => ({ ...inputs, connection: withDefaults(inputs.connection as Partial<Connection>) }),
  async create(inputs, status) {
    await copy(inputs, status);
    return { id: randomBytes(8).toString('hex'), outputs: inputs };
  },
  async update(inputs, state, status) {
    const [wanted, there] = [inputs as Values & Inputs, state as Values & Inputs];
    // Another host alone is no reason to copy: that is how the official plugin does it.
    if (wanted.source.hash !== there.source.hash || wanted.remotePath !== there.remotePath)
      await copy(inputs, status);
    return inputs;
  },
  async delete() {},
};

async function copy(values: Values, status: Status): Promise<void> {
  const { source, remotePath, ...inputs } = values as Values & Inputs;
  const connection = withDefaults(inputs.connection);
  const folder = mkdtempSync(path.join(tmpdir(), 'stand-in-copy-'));
  try {
    await overSsh(connection, status, async (start) => {
      const sftp = async (batch: string[]) =>
        follow(start('sftp', ['-b', '-', '--', connection.host]), `${batch.join('\n')}\n`, 'none', status);
      const isFolder = (await sftp([`cd ${inBatch(remotePath)}`])).code === 0;
      const files = new Map<string, string>();
      collect(source, remotePath, isFolder, folder, files);
      const folders = new Set([...files.keys()].flatMap(ancestorsOf));
      const { code, stderr } = await sftp([
        // A leading minus: what exists already is no failure.
        ...[...folders].sort().map((remote) => `-mkdir ${inBatch(remote)}`),
        ...[...files].map(([remote, local]) => `put ${inBatch(local)} ${inBatch(remote)}`),
      ]);
      if (code !== 0) throw new Error(`failed to copy to remote path ${remotePath}: ${stderr.trim()}`);
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Notes for every file where it goes, and lays a copy beside without its mode, since the official plugin sets none. */
function collect(
  source: Source,
  remote: string,
  isFolder: boolean,
  folder: string,
  files: Map<string, string>,
): void {
  const add = (target: string, write: (local: string) => void) => {
    const local = path.join(folder, String(files.size));
    write(local);
    files.set(target, local);
  };
  if (source.text !== undefined) {
    const { text } = source;
    if (isFolder) {
      throw new Error(
        `remote path ${remote} is a directory; when using a text asset, remotePath must be a file path`,
      );
    }
    add(remote, (local) => writeFileSync(local, text));
  } else if (source.assets) {
    for (const [name, asset] of Object.entries(source.assets)) {
      collect(asset, path.posix.join(remote, name), false, folder, files);
    }
  } else if (source.path !== undefined) {
    const { path: from } = source;
    if (statSync(from).isDirectory()) {
      const target = from.endsWith('/') ? remote : path.posix.join(remote, path.basename(from));
      for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile()) continue;
        const file = path.join(entry.parentPath, entry.name);
        add(path.posix.join(target, path.relative(from, file)), (local) => copyWithoutMode(file, local));
      }
    } else {
      const target = isFolder ? path.posix.join(remote, path.basename(from)) : remote;
      add(target, (local) => copyWithoutMode(from, local));
    }
  } else {
    throw new Error(`the stand-in copies files, folders and text, not ${source.uri}`);
  }
}

function copyWithoutMode(from: string, to: string): void {
  copyFileSync(from, to);
  chmodSync(to, 0o666);
}

function ancestorsOf(file: string): string[] {
  const folder = path.posix.dirname(file);
  return folder === '/' || folder === '.' ? [] : [...ancestorsOf(folder), folder];
}

function inBatch(name: string): string {
  return `"${name.replaceAll(/["\\]/g, '\\$&')}"`;
}
