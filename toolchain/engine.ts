import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { askAtMostDaily, exists, fillOnce, Refused } from './cache.ts';
import type { Part, Progress } from './part.ts';
import { isAtLeast, versions } from './versions.ts';

interface GoProgram {
  name: string;
  /** Folder of the Go module that pins the program and all it is made of. */
  module: string;
  command: string;
  version: string;
  /** Measured on two cores with an empty Go cache. */
  expectedMinutes: number;
}

const engineProgram: GoProgram = {
  name: 'pulumi',
  module: path.join(import.meta.dirname, 'pulumi-engine'),
  command: 'github.com/pulumi/pulumi/pkg/v3/cmd/pulumi',
  version: versions.pulumi,
  expectedMinutes: 6,
};
const languageHostProgram: GoProgram = {
  name: 'pulumi-language-nodejs',
  module: path.join(import.meta.dirname, 'language-host'),
  command: 'github.com/pulumi/pulumi/sdk/v3/nodejs/cmd/pulumi-language-nodejs',
  version: versions.languageHost,
  expectedMinutes: 1,
};
const secondsBetweenProgress = 15;

/** The engine and its Node language host: the machine's own, else the official download, else built with Go. */
export async function findEngine(cacheFolder: string, progress: Progress): Promise<Part[]> {
  return (await engineOfMachine(progress)) ?? (await engineOfCache(cacheFolder, progress));
}

async function engineOfMachine(progress: Progress): Promise<Part[] | undefined> {
  const pulumi = await onPath('pulumi');
  if (!pulumi) return undefined;
  const version = await versionOf(pulumi);
  if (!isAtLeast(version, versions.minimalPulumi)) {
    progress(`${pulumi} is ${version}, older than ${versions.minimalPulumi}: not taken`);
    return undefined;
  }
  const beside = path.join(path.dirname(pulumi), languageHostProgram.name);
  const languageHost = (await exists(beside)) ? beside : await onPath(languageHostProgram.name);
  if (!languageHost) {
    progress(`${pulumi} comes without ${languageHostProgram.name}: not taken`);
    return undefined;
  }
  return [
    { part: 'pulumi', version, took: pulumi, from: 'machine' },
    { part: 'pulumi-language-nodejs', version, took: languageHost, from: 'machine' },
  ];
}

async function engineOfCache(cacheFolder: string, progress: Progress): Promise<Part[]> {
  const folder = path.join(cacheFolder, `pulumi-${versions.pulumi}-host-${versions.languageHost}`);
  const originFile = (of: string) => path.join(of, 'origin');
  await fillOnce(
    folder,
    async (partial) => {
      const origin = await downloadOrBuild(partial, cacheFolder, progress);
      await writeFile(originFile(partial), origin);
    },
    progress,
  );
  const from = (await readFile(originFile(folder), 'utf8')) as Part['from'];
  const languageHostVersion = from === 'built from source' ? versions.languageHost : versions.pulumi;
  return [
    { part: 'pulumi', version: versions.pulumi, took: path.join(folder, engineProgram.name), from },
    {
      part: 'pulumi-language-nodejs',
      version: languageHostVersion,
      took: path.join(folder, languageHostProgram.name),
      from,
    },
  ];
}

async function downloadOrBuild(into: string, cacheFolder: string, progress: Progress): Promise<Part['from']> {
  try {
    await download(into, cacheFolder, progress);
    return 'official download';
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    progress(error.message);
    await build(languageHostProgram, into, error.message, progress);
    await build(engineProgram, into, error.message, progress);
    return 'built from source';
  }
}

async function download(into: string, cacheFolder: string, progress: Progress): Promise<void> {
  const cpu = process.arch === 'arm64' ? 'arm64' : 'x64';
  const address = `https://get.pulumi.com/releases/sdk/pulumi-v${versions.pulumi}-${process.platform}-${cpu}.tar.gz`;
  await askAtMostDaily(path.join(cacheFolder, `refused-pulumi-${versions.pulumi}`), async () => {
    progress(`downloading ${address}`);
    const archive = path.join(into, 'archive.tar.gz');
    try {
      await execa('curl', ['-fsSL', '--connect-timeout', '15', '--max-time', '900', '-o', archive, address]);
      await execa('tar', ['-xzf', archive, '--strip-components=1', '-C', into]);
    } catch (error) {
      throw new Refused(`the official download of Pulumi was not to be had: ${reasonOf(error)}`);
    } finally {
      await rm(archive, { force: true });
    }
  });
}

async function build(program: GoProgram, into: string, whyBuilt: string, progress: Progress): Promise<void> {
  const run = execa(
    'go',
    [
      'build',
      '-v',
      '-mod=readonly',
      '-trimpath',
      `-ldflags=-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v${program.version}`,
      `-o=${path.join(into, program.name)}`,
      program.command,
    ],
    { cwd: program.module, lines: true, all: true },
  );
  let packages = 0;
  const began = Date.now();
  const report = () => {
    const seconds = Math.round((Date.now() - began) / 1000);
    progress(
      `building ${program.name} ${program.version} with Go: ${seconds} s, ${packages} packages compiled` +
        ` (about ${program.expectedMinutes} min on two cores, once)`,
    );
  };
  report();
  const timer = setInterval(report, secondsBetweenProgress * 1000);
  try {
    for await (const line of run.iterable({ from: 'all' })) if (/^[\w.-]+(\/|$)/.test(line)) packages += 1;
    await run;
  } catch (error) {
    throw new Error(
      `cannot build ${program.name} ${program.version} with Go: ${reasonOf(error)}\n` +
        `It was to be built because no Pulumi ≥ ${versions.minimalPulumi} with ${languageHostProgram.name} is on PATH` +
        ` and ${whyBuilt}\n` +
        `Install Pulumi (https://www.pulumi.com/docs/install/), or the Go that ${program.module}/go.mod names.`,
      { cause: error },
    );
  } finally {
    clearInterval(timer);
  }
}

async function versionOf(pulumi: string): Promise<string> {
  const { stdout } = await execa(pulumi, ['version'], { env: { PULUMI_SKIP_UPDATE_CHECK: 'true' } });
  return stdout.trim().replace(/^v/, '');
}

async function onPath(program: string): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    const file = path.join(folder, program);
    if (path.isAbsolute(folder) && (await exists(file))) return file;
  }
  return undefined;
}

/** The last lines of what a failed program said, or why it could not be started. */
export function reasonOf(error: unknown): string {
  const failure = error as { all?: unknown; stderr?: unknown; shortMessage?: string; message: string };
  const said = [failure.all ?? failure.stderr ?? []].flat().join('\n').split('\n');
  const telling = said.filter((line) => line.trim() !== '' && !line.startsWith('Will retry'));
  return telling.slice(-2).join('\n') || failure.shortMessage || failure.message;
}
