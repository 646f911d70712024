import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { z } from 'zod';
import { labCache } from './cache.ts';
import type { LabHost, LabKind } from './host.ts';
import { withLock } from './lock.ts';
import { attachNspawn, cgroupRoot, createNspawn, hostSideOf, removeNspawn } from './nspawn.ts';
import { identifyProcess, isAlive, processIdentity } from './process.ts';
import { installPackages, missingPrograms, packagesOf } from './programs.ts';
import { type LabRegistry, registryAt } from './registry.ts';
import { attachVm, canRunVm, createVm, removeVm } from './vm.ts';

/** A lab host and the registry from which it pulls. */
export interface Lab extends LabHost {
  readonly registry: LabRegistry;
}

export interface LabOptions {
  readonly kind: LabKind;
  /** Letters, digits and dashes; default the lowest free of `lab-0`, `lab-1`, … */
  readonly name?: string;
  /** Told what is done, line by line; default: nobody. */
  readonly progress?: (message: string) => void;
  /** The lab goes on after this process; default false: it is taken down with it, however it ends. */
  readonly outlivesProcess?: boolean;
}

export interface LabEntry {
  readonly name: string;
  readonly kind: LabKind;
  /** The process with which the lab goes down, while that lives. */
  readonly ownerPid: number | undefined;
  readonly stale: boolean;
}

export type LabAbility = { readonly ok: true } | { readonly ok: false; readonly reason: string };

const labRecord = z.strictObject({
  kind: z.enum(['nspawn', 'vm']),
  owner: processIdentity.optional(),
});
type LabRecord = z.infer<typeof labRecord>;

/**
 * A fresh, booted host that nothing of the product has touched, with its registry running.
 * The first one on a machine takes minutes (see `canRunLab` for what must be there), each later one seconds.
 * Also takes down what processes that ended without doing so have left.
 */
export async function createLab(options: LabOptions): Promise<Lab> {
  const { kind, progress = () => {}, outlivesProcess = false } = options;
  const name = await withLock('labs', async () => {
    for (const entry of await listLabs()) if (entry.stale) await takeDown(entry.name);
    const chosen = options.name ?? (await freeName());
    if (!/^[a-z0-9][a-z0-9-]{0,31}$/.test(chosen))
      throw new Error(`"${chosen}" cannot name a lab: at most 32 lower-case letters, digits and dashes`);
    if (await readRecord(chosen))
      throw new Error(`a lab named "${chosen}" exists: npm run lab down -- --name ${chosen}`);
    const record: LabRecord = outlivesProcess ? { kind } : { kind, owner: identifyProcess(process.pid) };
    await mkdir(recordFolder(), { recursive: true });
    await writeFile(recordFile(chosen), JSON.stringify(record));
    return chosen;
  });
  if (!outlivesProcess) takeDownWithProcess(name);
  try {
    const lab = withRegistry(await CREATE[kind]({ name, progress }));
    await lab.registry.start();
    return lab;
  } catch (error) {
    await takeDown(name);
    throw error;
  }
}

/** A lab that another process created. Throws when there is none of this name. */
export async function attachLab(name: string): Promise<Lab> {
  const record = await readRecord(name);
  if (!record) throw new Error(`no lab named "${name}": npm run lab up -- --name ${name}`);
  return withRegistry(await ATTACH[record.kind](name));
}

/** Ends a lab of any process, in whatever state it is, and removes all of it; nothing to do is no error. */
export async function takeDown(name: string): Promise<void> {
  const record = await readRecord(name);
  if (record) {
    const lab = await attachLab(name).catch(() => undefined);
    if (lab && !(await sharesRegistry(name, record.kind))) await lab.registry.stop();
    await REMOVE[record.kind](name);
  }
  await rm(recordFile(name), { force: true });
  endingWithProcess.delete(name);
}

/** All labs of this cache, whoever created them. */
export async function listLabs(): Promise<LabEntry[]> {
  const files = await readdir(recordFolder()).catch(() => []);
  const entries = files.sort().map(async (file): Promise<LabEntry[]> => {
    const name = file.replace(/\.json$/, '');
    const record = await readRecord(name);
    if (!record) return [];
    const alive = record.owner !== undefined && isAlive(record.owner);
    return [
      {
        name,
        kind: record.kind,
        ownerPid: alive ? record.owner?.pid : undefined,
        stale: record.owner !== undefined && !alive,
      },
    ];
  });
  return (await Promise.all(entries)).flat();
}

/**
 * Whether labs of this kind can run on this machine. Missing Debian packages are installed when this is root on a
 * machine with apt; `progress` is told.
 */
export async function canRunLab(
  kind: LabKind,
  progress: (message: string) => void = () => {},
): Promise<LabAbility> {
  if (process.platform !== 'linux')
    return { ok: false, reason: `labs need Linux, this machine has ${process.platform}` };
  const root = process.getuid?.() === 0;
  if (kind === 'nspawn') {
    if (!root) return { ok: false, reason: 'a lab of kind nspawn needs root' };
    const obstacle = await nspawnObstacle();
    if (obstacle) return { ok: false, reason: obstacle };
  }
  const missing = missingPrograms(kind);
  if (missing.length > 0) {
    const packages = packagesOf(kind, missing);
    const install = `apt-get install ${packages.join(' ')}`;
    if (!root || !existsSync('/usr/bin/apt-get'))
      return { ok: false, reason: `not found: ${missing.join(', ')}; on Debian: ${install}` };
    try {
      await installPackages(packages, progress);
    } catch (error) {
      return { ok: false, reason: error instanceof Error ? error.message : String(error) };
    }
    const still = missingPrograms(kind);
    if (still.length > 0) return { ok: false, reason: `not found after ${install}: ${still.join(', ')}` };
  }
  return kind === 'vm' ? canRunVm() : { ok: true };
}

const CREATE = { nspawn: createNspawn, vm: createVm } as const;
const ATTACH = { nspawn: attachNspawn, vm: attachVm } as const;
const REMOVE = { nspawn: removeNspawn, vm: removeVm } as const;

/** A virtual machine reaches this machine's loopback as its gateway, so all of them share one registry. */
const VM_REGISTRY_ADDRESS = '127.0.0.1';

async function sharesRegistry(name: string, kind: LabKind): Promise<boolean> {
  return kind === 'vm' && (await listLabs()).some((other) => other.kind === 'vm' && other.name !== name);
}

function withRegistry(host: LabHost): Lab {
  const address = host.kind === 'vm' ? VM_REGISTRY_ADDRESS : hostSideOf(host.address);
  return {
    ...host,
    registry: registryAt(address),
    down: () => takeDown(host.name),
  };
}

/** Tried, since a container that this is run in may forbid any of it. */
async function nspawnObstacle(): Promise<string | undefined> {
  try {
    accessSync(cgroupRoot(), constants.W_OK);
    if (!existsSync(join(cgroupRoot(), 'cgroup.procs'))) throw new Error('not mounted');
  } catch (error) {
    return `a lab of kind nspawn needs cgroup v2 at ${cgroupRoot()}: ${error instanceof Error ? error.message : error}`;
  }
  await mkdir(labCache(), { recursive: true });
  const overlay = await execa('unshare', ['--mount', '--net', 'sh', '-euc', TRY_OVERLAY], {
    cwd: labCache(),
    stdin: 'ignore',
    reject: false,
  });
  return overlay.exitCode === 0
    ? undefined
    : `a lab of kind nspawn needs namespaces and overlay mounts on ${labCache()}: ${overlay.stderr || overlay.shortMessage}`;
}

const TRY_OVERLAY = `
folder=$(mktemp -d ./try-XXXXXX)
trap 'umount "$folder/root" 2>/dev/null || true; rm -rf "$folder"' EXIT
mkdir "$folder/lower" "$folder/upper" "$folder/work" "$folder/root"
mount -t overlay overlay -o "lowerdir=$folder/lower,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
`;

const endingWithProcess = new Set<string>();

function takeDownWithProcess(name: string): void {
  if (endingWithProcess.size === 0 && !hooked) hookProcessEnd();
  endingWithProcess.add(name);
}

let hooked = false;

function hookProcessEnd(): void {
  hooked = true;
  // At its end a process can only do what does not wait, so another one takes the labs down.
  const takeAllDown = () => {
    for (const name of endingWithProcess) {
      spawnSync(process.execPath, [join(import.meta.dirname, 'main.ts'), 'down', '--name', name], {
        stdio: ['ignore', 'ignore', 'inherit'],
      });
    }
    endingWithProcess.clear();
  };
  process.on('exit', takeAllDown);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      takeAllDown();
      process.kill(process.pid, signal);
    });
  }
}

async function freeName(): Promise<string> {
  const taken = new Set((await listLabs()).map((entry) => entry.name));
  for (let number = 0; ; number++) if (!taken.has(`lab-${number}`)) return `lab-${number}`;
}

async function readRecord(name: string): Promise<LabRecord | undefined> {
  const text = await readFile(recordFile(name), 'utf8').catch(() => undefined);
  return text === undefined ? undefined : labRecord.parse(JSON.parse(text));
}

const recordFolder = (): string => join(labCache(), 'labs');
const recordFile = (name: string): string => join(recordFolder(), `${name}.json`);
