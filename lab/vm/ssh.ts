import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import type { LabCommandOptions, LabCommandResult } from '../host.ts';

export interface SshTarget {
  /** Where the control socket and the known-hosts file go. */
  readonly folder: string;
  readonly address: string;
  readonly port: number;
  readonly user: string;
  readonly privateKeyPath: string;
  /** `ssh-ed25519 AAAA…` */
  readonly hostKey: string;
}

/** Commands over one shared connection: in an emulated guest a connection of its own costs over a second, a command on it 0.1 s. */
export interface SshConnection {
  /** Connects anew; tries until the limit, default 300 s, then throws what ssh said last. */
  connect(limitSeconds?: number): Promise<void>;
  run(command: string, options?: LabCommandOptions): Promise<LabCommandResult>;
  /** Closes the connection, alive or not. */
  disconnect(): Promise<void>;
}

export async function sshConnection(target: SshTarget): Promise<SshConnection> {
  const knownHosts = join(target.folder, 'known_hosts');
  await writeFile(knownHosts, `[${target.address}]:${target.port} ${target.hostKey}\n`);
  const errors = join(target.folder, 'ssh.log');
  const options = [
    ...['-F', 'none', '-i', target.privateKeyPath, '-p', String(target.port), '-l', target.user],
    ...Object.entries({
      IdentitiesOnly: 'yes',
      BatchMode: 'yes',
      StrictHostKeyChecking: 'yes',
      UserKnownHostsFile: `"${knownHosts}"`,
      LogLevel: 'ERROR',
      ConnectTimeout: '20',
      ControlMaster: 'auto',
      ControlPath: `"${join(target.folder, 'ssh')}"`,
      ControlPersist: 'yes',
    }).flatMap(([name, value]) => ['-o', `${name}=${value}`]),
  ];

  const control = (command: string) =>
    execa('ssh', [...options, '-O', command, target.address], { reject: false, stdin: 'ignore' });

  async function disconnect(): Promise<void> {
    await control('exit');
    await rm(join(target.folder, 'ssh'), { force: true });
  }

  return {
    disconnect,
    async connect(limitSeconds = 300) {
      await disconnect();
      const deadline = Date.now() + limitSeconds * 1000;
      for (;;) {
        await rm(errors, { force: true });
        const master = await execa('ssh', [...options, '-f', '-N', '-E', errors, target.address], {
          reject: false,
          stdio: 'ignore',
        });
        if (master.exitCode === 0) return;
        if (Date.now() > deadline)
          throw new Error(
            `no ssh connection to ${target.address}:${target.port} within ${limitSeconds} s: see ${errors}`,
          );
        await sleep(100);
      }
    },
    async run(command, { root = false, input } = {}) {
      const words = root ? `sudo -n -- sh -c ${quote(command)}` : command;
      const result = await execa('ssh', [...options, target.address, '--', words], {
        reject: false,
        stripFinalNewline: false,
        ...(input === undefined ? { stdin: 'ignore' } : { input }),
      });
      return { exitCode: result.exitCode ?? 255, stdout: result.stdout ?? '', stderr: result.stderr ?? '' };
    },
  };
}

/** One word for a POSIX shell. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
