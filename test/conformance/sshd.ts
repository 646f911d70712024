import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';

const program = '/usr/sbin/sshd';
const startLimitMs = 5000;

/** A private ssh server on the loopback address, for the user who runs the suite. */
export interface Sshd {
  /** For the `connection` of a resource. */
  connection: { host: string; port: number; user: string; privateKey: string; hostKey: string };
  /** Where programs can be put that a login shall find first. */
  bin: string;
  /** The private key as a file, for clients that want one. */
  keyFile: string;
  stop(): Promise<void>;
}

/** The variables that the server lets a client set. */
export const acceptedVariable = 'CONFORMANCE_GIVEN';

export async function startSshd(): Promise<Sshd> {
  if (!existsSync(program)) throw new Error(`${program} is missing: install the package openssh-server`);
  const folder = mkdtempSync(path.join(tmpdir(), 'conformance-sshd-'));
  // Readable by the server after it has taken on the user's rights.
  chmodSync(folder, 0o755);
  const file = (name: string) => path.join(folder, name);
  await makeKey(file('host-key'));
  await makeKey(file('user-key'));
  mkdirSync(file('bin'));
  // Root's sshd wants it, and a machine without a running sshd has none.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true });
  const port = await freePort();
  writeFileSync(
    file('config'),
    `
ListenAddress 127.0.0.1:${port}
HostKey ${file('host-key')}
AuthorizedKeysFile ${file('user-key.pub')}
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
PidFile none
AcceptEnv ${acceptedVariable} PULUMI_COMMAND_STDOUT PULUMI_COMMAND_STDERR
SetEnv PATH=${file('bin')}:${process.env.PATH}
Subsystem sftp internal-sftp
`,
  );
  const server = spawn(program, ['-D', '-e', '-f', file('config')], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  server.stderr.on('data', (text: Buffer) => {
    said += text;
  });
  const began = Date.now();
  while (!(await answers(port))) {
    if (server.exitCode !== null || Date.now() - began > startLimitMs) {
      server.kill();
      throw new Error(`sshd does not answer on 127.0.0.1:${port}: ${said.trim()}`);
    }
    await sleep(20);
  }
  return {
    connection: {
      host: '127.0.0.1',
      port,
      user: userInfo().username,
      privateKey: readFileSync(file('user-key'), 'utf8'),
      hostKey: readFileSync(file('host-key.pub'), 'utf8').trim(),
    },
    bin: file('bin'),
    keyFile: file('user-key'),
    async stop() {
      server.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function makeKey(file: string, type = 'ed25519'): Promise<void> {
  await execa('ssh-keygen', ['-q', '-t', type, '-N', '', '-C', 'conformance', '-f', file]);
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
