import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { LAB_USER } from './guest-tree.ts';
import type { LabHost } from './host.ts';
import { withLock } from './lock.ts';
import { type SshConnection, sshConnection } from './ssh.ts';
import { thaw } from './vm/freeze.ts';
import {
  endAtReboot,
  findProcess,
  killMachine,
  launch,
  launchOnFreePorts,
  type MachineFiles,
  waitUntilBooted,
} from './vm/machine.ts';
import type { Progress } from './vm/progress.ts';
import { connectSeconds, createOverlay, ensureTemplate, machineFolder, recordOf } from './vm/template.ts';

export { canRunVm, type VmAbility } from './vm/ability.ts';

export interface VmOptions {
  /** Unique among the virtual machines of this lab cache: letters, digits and dashes, e.g. `lab-0`. */
  readonly name: string;
  /** The guest's memory; default 2048. Another size needs a template of its own. */
  readonly memoryMiB?: number;
  /** Told what happens while a template is made (three minutes, the first time only); default: nobody. */
  readonly progress?: Progress;
}

const address = '127.0.0.1';

/** What another process needs to go on with a running machine. */
const machineRecord = z.strictObject({
  memoryMiB: z.number(),
  ports: z.strictObject({ ssh: z.number(), engine: z.number() }),
  kernel: z.string(),
  initrd: z.string(),
  privateKeyPath: z.string(),
  hostKey: z.string(),
});
type MachineRecord = z.infer<typeof machineRecord>;

/**
 * A fresh host with a kernel of its own, resumed from the template in a few seconds.
 * Throws when a machine of this name runs already, or when the template is missing and cannot be made.
 */
export async function createVm({ name, memoryMiB = 2048, progress = () => {} }: VmOptions): Promise<LabHost> {
  if (!/^[a-z0-9][a-z0-9-]{0,31}$/.test(name))
    throw new Error(`"${name}" cannot name a lab: at most 32 lower-case letters, digits and dashes`);
  const template = await ensureTemplate(memoryMiB, progress);
  const folder = machineFolder(name);
  return withLock(`vm-${name}`, async () => {
    if (await findProcess(folder))
      throw new Error(`a virtual machine named "${name}" runs already: take it down first`);
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    const files = { folder, kernel: template.kernel, initrd: template.initrd, disk: diskOf(folder) };
    try {
      await createOverlay({ backing: template.disk, format: 'qcow2', disk: files.disk });
      const { machine, ports } = await launchOnFreePorts(files, {
        memoryMiB,
        memoryFile: { path: template.memoryFile, mapping: 'private' },
        incoming: true,
      });
      await thaw(machine, template.stateFile);
      machine.qmp.close();
      const record: MachineRecord = {
        memoryMiB,
        ports,
        kernel: template.kernel,
        initrd: template.initrd,
        ...template.keys,
      };
      await writeFile(recordOf(folder), JSON.stringify(record));
      const connection = connectionTo(folder, record);
      await connection.connect(connectSeconds);
      await becomeOneself(connection, name);
      return vmHost(name, record, connection);
    } catch (error) {
      await killMachine(folder);
      throw error;
    }
  });
}

/** The machine of this name that another process created. Throws when none runs. */
export async function attachVm(name: string): Promise<LabHost> {
  const folder = machineFolder(name);
  const record = await readFile(recordOf(folder), 'utf8').catch(() => undefined);
  if (record === undefined)
    throw new Error(`no virtual machine named "${name}": there is no ${recordOf(folder)}`);
  const parsed = machineRecord.parse(JSON.parse(record));
  return vmHost(name, parsed, connectionTo(folder, parsed));
}

/** Ends the machine of this name, in whatever state it is, and removes all that belongs to it; nothing to do is no error. */
export async function removeVm(name: string): Promise<void> {
  await killMachine(machineFolder(name));
  await rm(machineFolder(name), { recursive: true, force: true });
}

function vmHost(name: string, record: MachineRecord, connection: SshConnection): LabHost {
  const folder = machineFolder(name);
  const files: MachineFiles = { folder, kernel: record.kernel, initrd: record.initrd, disk: diskOf(folder) };
  async function boot(): Promise<void> {
    const { qmp } = await launch(files, { memoryMiB: record.memoryMiB, ports: record.ports });
    qmp.close();
    await waitUntilBooted(folder);
    await connection.connect(connectSeconds);
  }
  return {
    kind: 'vm',
    name,
    address,
    sshPort: record.ports.ssh,
    user: LAB_USER,
    privateKeyPath: record.privateKeyPath,
    hostKey: record.hostKey,
    engineUrl: `http://${address}:${record.ports.engine}`,
    ssh: connection.run,
    async reboot() {
      await endAtReboot(folder, () => connection.run('systemctl --no-block reboot', { root: true }));
      await boot();
    },
    async cutPower() {
      await killMachine(folder);
      await boot();
    },
    async down() {
      await connection.disconnect();
      await removeVm(name);
    },
  };
}

function connectionTo(folder: string, record: MachineRecord): SshConnection {
  return sshConnection(folder, {
    address,
    port: record.ports.ssh,
    user: LAB_USER,
    privateKeyPath: record.privateKeyPath,
    hostKey: record.hostKey,
  });
}

/** A resumed guest's clock stands where it was frozen, and its name is the template's. */
async function becomeOneself(connection: SshConnection, name: string): Promise<void> {
  const asRoot = async (command: string): Promise<string> => {
    const result = await connection.run(command, { root: true });
    if (result.exitCode !== 0) throw new Error(`"${name}": ${command}: ${result.stderr}`);
    return result.stdout;
  };
  await asRoot(
    `date -s @${Date.now() / 1000} && echo ${name} >/etc/hostname && hostname ${name} && echo '127.0.1.1 ${name}' >>/etc/hosts`,
  );
  // The command took a while to arrive; what is missing is told by a clock read halfway between question and answer.
  const asked = Date.now();
  const guestClock = Number(await asRoot('date +%s.%N'));
  const missing = (asked + Date.now()) / 2000 - guestClock;
  await asRoot(`date -s '${missing.toFixed(3)} seconds'`);
}

const diskOf = (folder: string): string => join(folder, 'disk.qcow2');
