import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { execa } from 'execa';
import type { LabCommandOptions, LabCommandResult } from './host.ts';

/** Seconds after which the shared connection goes away by itself, if its maker ended without closing it. */
const IDLE_SECONDS = 60;
const RETRY_MS = 50;

export interface SshTarget {
  readonly address: string;
  readonly port: number;
  readonly user: string;
  readonly privateKeyPath: string;
  /** `ssh-ed25519 AAAA…` */
  readonly hostKey: string;
}

/** Commands over one shared connection, made anew where it was lost. */
export interface SshConnection {
  /** Connects anew; tries until the limit, then throws what ssh said last. */
  connect(limitSeconds: number): Promise<void>;
  run(command: string, options?: LabCommandOptions): Promise<LabCommandResult>;
  /** Closes the connection, alive or not. */
  disconnect(): Promise<void>;
}

/** The arguments of `ssh` up to the remote command: this lab and nothing of the user's own ssh configuration. */
export function sshArguments(target: SshTarget): string[] {
  const options = {
    IdentitiesOnly: 'yes',
    BatchMode: 'yes',
    StrictHostKeyChecking: 'yes',
    UserKnownHostsFile: '/dev/null',
    GlobalKnownHostsFile: '/dev/null',
    KnownHostsCommand: `/bin/echo %H ${target.hostKey}`,
    LogLevel: 'ERROR',
    ConnectTimeout: '20',
  };
  return [
    ...['-F', 'none', '-i', target.privateKeyPath, '-p', String(target.port), '-l', target.user],
    ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]),
    target.address,
  ];
}

/** `folder` is where the control socket goes; its path must leave room in the 108 bytes of a socket's address. */
export function sshConnection(folder: string, target: SshTarget): SshConnection {
  const socket = join(folder, 'ssh');
  const log = join(folder, 'ssh.log');
  const shared = ['ControlMaster=auto', `ControlPath="${socket}"`, `ControlPersist=${IDLE_SECONDS}`];
  const words = [...shared.flatMap((option) => ['-o', option]), ...sshArguments(target)];

  async function disconnect(): Promise<void> {
    await execa('ssh', ['-O', 'exit', ...words], { reject: false, stdin: 'ignore' });
    await rm(socket, { force: true });
  }

  return {
    disconnect,
    async connect(limitSeconds) {
      await disconnect();
      const deadline = Date.now() + limitSeconds * 1000;
      for (;;) {
        await writeFile(log, '');
        const opened = await execa('ssh', ['-f', '-N', '-E', log, ...words], {
          reject: false,
          stdio: 'ignore',
        });
        if (opened.exitCode === 0) return;
        if (Date.now() > deadline) {
          const said = (await readFile(log, 'utf8')).trim();
          throw new Error(
            `no ssh connection to ${target.user}@${target.address}:${target.port} within ${limitSeconds} s: ${said}`,
          );
        }
        await setTimeout(RETRY_MS);
      }
    },
    async run(command, { root = false, input } = {}) {
      const remote = root ? `sudo -n -- sh -c ${quoteForShell(command)}` : command;
      const result = await execa('ssh', [...words, '--', remote], {
        reject: false,
        stripFinalNewline: false,
        ...(input === undefined ? { stdin: 'ignore' } : { input }),
      });
      return { exitCode: result.exitCode ?? 255, stdout: result.stdout ?? '', stderr: result.stderr ?? '' };
    },
  };
}

/** One word for a POSIX shell. */
export function quoteForShell(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
