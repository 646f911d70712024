import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openQmp, type Qmp } from './qmp.ts';

export const emulator = 'qemu-system-x86_64';

/** The line that the guest's last boot unit writes to its serial console. */
export const readyLine = 'LAB-READY';

/** What decides how the guest's hardware looks: a frozen guest can only be resumed under the very same. */
export const hardware = [
  // `max` without nested virtualization, and without 5-level paging, with which QEMU corrupts the guest silently.
  ['-machine', 'q35'],
  ['-accel', 'tcg,thread=multi'],
  ['-cpu', 'max,svm=off,la57=off'],
  ['-smp', '2'],
  ['-device', 'virtio-blk-pci,drive=disk'],
  ['-device', 'virtio-net-pci,netdev=net,romfile='],
  ['-device', 'virtio-rng-pci'],
  ['-device', 'vmgenid,guid=auto'],
  ['-append', 'root=/dev/vda rw console=ttyS0 quiet systemd.show_status=0 mitigations=off'],
] as const;

/** Of template and run alike: a guest that booted under `writethrough` sends no flushes, and a power cut would lose synced data. */
export const diskCache = 'writeback';

export interface MachineFiles {
  /** Where the machine's own files lie: sockets, log, serial console, process id. */
  readonly folder: string;
  readonly kernel: string;
  readonly initrd: string;
  /** The qcow2 disk. */
  readonly disk: string;
}

export interface ForwardedPorts {
  /** Port on 127.0.0.1 of this machine that leads to the guest's port 22. */
  readonly ssh: number;
  /** Port on 127.0.0.1 of this machine that leads to the guest's port 7770. */
  readonly engine: number;
}

export interface LaunchOptions {
  readonly memoryMiB: number;
  readonly ports: ForwardedPorts;
  /** The guest's memory as a file; default anonymous memory. `shared` writes to it, `private` leaves it as it is. */
  readonly memoryFile?: { readonly path: string; readonly mapping: 'shared' | 'private' };
  /** Wait for a frozen guest instead of booting; default false. */
  readonly incoming?: boolean;
  /** End with this process, however that ends; default false: QEMU goes on without it. */
  readonly endsWithProcess?: boolean;
}

/** A running QEMU. */
export interface Machine {
  readonly processId: number;
  readonly qmp: Qmp;
}

/** The address range that QEMU's user network gives out; there the guest sees this machine as 10.0.2.2. */
export const guestNetwork = { address: '10.0.2.15/24', gateway: '10.0.2.2', nameServer: '10.0.2.3' };

/** Another process took a port between its choice and QEMU's bind. */
class PortTaken extends Error {}

/** Starts QEMU and waits until it answers on its control socket. */
export async function launch(files: MachineFiles, options: LaunchOptions): Promise<Machine> {
  await Promise.all(
    [controlSocket(files.folder), serialLog(files.folder)].map((path) => rm(path, { force: true })),
  );
  const log = openSync(emulatorLog(files.folder), 'w');
  const words = [emulator, ...commandLine(files, options)];
  const [program = emulator, ...rest] = options.endsWithProcess
    ? ['setpriv', '--pdeathsig=KILL', '--', ...words]
    : words;
  const child = spawn(program, rest, {
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  const failure = new Promise<never>((_, reject) => child.once('error', reject));
  child.unref();
  return Promise.race([failure, connectControl(files.folder, child)]);
}

async function connectControl(folder: string, child: ChildProcess): Promise<Machine> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    if (child.exitCode !== null) throw await startFailure(folder);
    try {
      const qmp = await openQmp(controlSocket(folder));
      if (child.pid === undefined) throw new Error(`${emulator} answers but has no process id`);
      return { processId: child.pid, qmp };
    } catch (error) {
      if (child.pid === undefined || Date.now() > deadline) throw error;
      await sleep(20);
    }
  }
}

async function startFailure(folder: string): Promise<Error> {
  const said = (await readFile(emulatorLog(folder), 'utf8')).trim();
  if (said.includes('Could not set up host forwarding rule')) return new PortTaken(said);
  return new Error(`${emulator} ended at its start: ${said} (log: ${emulatorLog(folder)})`);
}

function commandLine(files: MachineFiles, options: LaunchOptions): string[] {
  const memory = `${options.memoryMiB}M`;
  const { ports, memoryFile } = options;
  return [
    ...['-nodefaults', '-no-user-config', '-display', 'none'],
    ...hardware.flat(),
    ...['-m', memory],
    ...(memoryFile
      ? [
          '-object',
          `memory-backend-file,id=ram,size=${memory},mem-path=${escapeComma(memoryFile.path)},share=${memoryFile.mapping === 'shared' ? 'on' : 'off'}`,
          ...['-machine', 'memory-backend=ram'],
        ]
      : []),
    ...['-kernel', files.kernel, '-initrd', files.initrd],
    ...['-drive', `file=${escapeComma(files.disk)},if=none,id=disk,format=qcow2,cache=${diskCache}`],
    '-netdev',
    `user,id=net,hostfwd=tcp:127.0.0.1:${ports.ssh}-:22,hostfwd=tcp:127.0.0.1:${ports.engine}-:7770`,
    ...['-serial', `file:${escapeComma(serialLog(files.folder))}`],
    ...['-qmp', `unix:${escapeComma(controlSocket(files.folder))},server=on,wait=off`],
    ...['-pidfile', processIdFile(files.folder)],
    ...(options.incoming ? ['-incoming', 'defer'] : []),
  ];
}

/** QEMU's option lists take a doubled comma for a literal one. */
function escapeComma(path: string): string {
  return path.replaceAll(',', ',,');
}

const controlSocket = (folder: string): string => join(folder, 'qmp');
const emulatorLog = (folder: string): string => join(folder, 'qemu.log');
const serialLog = (folder: string): string => join(folder, 'serial.log');
const processIdFile = (folder: string): string => join(folder, 'qemu.pid');

/**
 * Waits for the guest's ready line of the boot since the launch. Default limit 600 s: a boot takes 12 s on idle
 * cores, and took over a minute with five other jobs on two cores.
 */
export async function waitUntilBooted(machineFolder: string, limitSeconds = 600): Promise<void> {
  const deadline = Date.now() + limitSeconds * 1000;
  for (;;) {
    if ((await readConsole(machineFolder)).includes(readyLine)) return;
    if ((await findProcess(machineFolder)) === undefined)
      throw await bootFailure(machineFolder, 'the machine ended during its boot');
    if (Date.now() > deadline)
      throw await bootFailure(machineFolder, `no "${readyLine}" within ${limitSeconds} s`);
    await sleep(50);
  }
}

async function readConsole(machineFolder: string): Promise<string> {
  return readFile(serialLog(machineFolder), 'latin1').catch(() => '');
}

async function bootFailure(folder: string, reason: string): Promise<Error> {
  const console = await readConsole(folder);
  return new Error(
    `${reason}; last lines of ${serialLog(folder)}:\n${console.trimEnd().split('\n').slice(-10).join('\n')}`,
  );
}

/** The process id of the QEMU that runs from this folder, or undefined: a recycled id is told by its command line. */
export async function findProcess(machineFolder: string): Promise<number | undefined> {
  const recorded = Number(await readFile(processIdFile(machineFolder), 'utf8').catch(() => ''));
  if (!recorded) return undefined;
  const commandLine = await readFile(`/proc/${recorded}/cmdline`, 'utf8').catch(() => '');
  return commandLine.split('\0').includes(processIdFile(machineFolder)) ? recorded : undefined;
}

/** Ends the QEMU of this folder as a power cut does: nothing in the guest, nor QEMU itself, gets to finish anything. */
export async function killMachine(machineFolder: string): Promise<void> {
  const processId = await findProcess(machineFolder);
  if (processId === undefined) return;
  process.kill(processId, 'SIGKILL');
  await waitUntilEnded(processId);
}

/** Waits until a QEMU holds no file any more, neither its disk nor its ports: some time after its command line is gone. Default limit 60 s. */
export async function waitUntilEnded(processId: number, limitSeconds = 60): Promise<void> {
  const deadline = Date.now() + limitSeconds * 1000;
  while (!(await hasEnded(processId))) {
    if (Date.now() > deadline)
      throw new Error(`QEMU (process ${processId}) has not ended within ${limitSeconds} s`);
    await sleep(10);
  }
}

async function hasEnded(processId: number): Promise<boolean> {
  try {
    const [threads, stat] = await Promise.all([
      readdir(`/proc/${processId}/task`),
      readFile(`/proc/${processId}/stat`, 'utf8'),
    ]);
    // A zombie that nobody reaps has closed its files once its other threads are gone.
    return threads.length === 1 && stat.slice(stat.lastIndexOf(')')).startsWith(') Z');
  } catch {
    return true;
  }
}

/**
 * Lets `reboot` ask the guest for a reboot, and waits until QEMU has ended in its place, to be launched again: a reset
 * within the same QEMU boots several times slower (on cores busy with five other jobs 51 and 127 s, against 28 and 36 s), since the translations of the old
 * guest's code are kept and thrown away piece by piece. Limit 600 s.
 */
export async function endAtReboot(machineFolder: string, reboot: () => Promise<unknown>): Promise<void> {
  const processId = await findProcess(machineFolder);
  if (processId === undefined) throw new Error(`no machine runs in ${machineFolder}`);
  const qmp = await openQmp(controlSocket(machineFolder));
  await qmp.execute('set-action', { reboot: 'shutdown' });
  qmp.close();
  await reboot();
  await waitUntilEnded(processId, 600);
}

/** Like `launch`, on ports of its own choice. */
export async function launchOnFreePorts(
  files: MachineFiles,
  options: Omit<LaunchOptions, 'ports'>,
): Promise<{ machine: Machine; ports: ForwardedPorts }> {
  for (let attempt = 1; ; attempt++) {
    const ports = await choosePorts();
    try {
      return { machine: await launch(files, { ...options, ports }), ports };
    } catch (error) {
      if (!(error instanceof PortTaken) || attempt === 5) throw error;
    }
  }
}

const firstPort = 20_000;
const lastPort = 29_999;

/**
 * Chooses two free ports below the range of ephemeral ports, so that no outgoing connection takes them while the
 * machine is off; QEMU's bind is what reserves them (PortTaken: choose again).
 */
async function choosePorts(): Promise<ForwardedPorts> {
  const ssh = await freePort(() => true);
  return { ssh, engine: await freePort((port) => port !== ssh) };
}

async function freePort(wanted: (port: number) => boolean): Promise<number> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = firstPort + Math.floor(Math.random() * (lastPort - firstPort + 1));
    if (wanted(port) && (await isFree(port))) return port;
  }
  throw new Error(`no free port on 127.0.0.1 between ${firstPort} and ${lastPort}`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
