/** Test double of the connections that official plugins make: the system's ssh, held to what they ask for. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Status } from './provider.ts';

export interface Endpoint {
  host: string;
  port: number;
  user: string;
  password?: string;
  privateKey?: string;
  privateKeyPassword?: string;
  agentSocketPath?: string;
  hostKey?: string;
  /** A dial is tried once more than this; -1: for ever. */
  dialErrorLimit: number;
  /** Seconds; 0: no limit. */
  perDialTimeout: number;
}
export interface Connection extends Endpoint {
  proxy?: Endpoint;
}

/** Starts `ssh` or `sftp` over a connection that stands; `environment` goes along where the host accepts it. */
export type Start = (
  program: 'ssh' | 'sftp',
  command: string[],
  environment?: Record<string, string>,
) => ChildProcess;

/** The official defaults. */
export function withDefaults(connection: Partial<Connection>): Connection {
  const { proxy } = connection;
  return { ...endpointWithDefaults(connection), ...(proxy && { proxy: endpointWithDefaults(proxy) }) };
}

function endpointWithDefaults(given: Partial<Endpoint>): Endpoint {
  return Object.assign({ user: 'root', port: 22, dialErrorLimit: 10, perDialTimeout: 15 }, given as Endpoint);
}

/** Dials until it is logged in, as often as the connection allows, then lets `use` start programs over it. */
export async function overSsh<Result>(
  connection: Connection,
  status: Status,
  use: (start: Start) => Promise<Result>,
): Promise<Result> {
  await refuseUnusable(connection);
  for (let failures = 0; ; failures += 1) {
    const folder = mkdtempSync(path.join(tmpdir(), 'stand-in-ssh-'));
    const socket = path.join(folder, 'socket');
    const master = spawn('ssh', [
      ...optionsFor(connection, folder),
      // Local output tells that the login succeeded and the socket is there.
      ...['-M', '-N', '-S', socket, '-o', 'PermitLocalCommand=yes', '-o', 'LocalCommand=echo logged in'],
      // Lets pass what each program over the socket names; by itself this connection sends none.
      ...['-o', 'SendEnv=*'],
      ...['--', connection.host],
    ]);
    const endWithUs = () => master.kill();
    process.on('exit', endWithUs);
    try {
      const failure = await loginFailureOf(master);
      if (failure === undefined) {
        return await use((program, command, environment = {}) =>
          spawn(
            program,
            [
              // Without its socket ssh would dial by itself, by nobody's rules: the proxy that fails prevents it.
              ...[
                '-F',
                'none',
                '-o',
                `ControlPath=${socket}`,
                '-o',
                'ProxyCommand=false',
                '-o',
                'LogLevel=ERROR',
              ],
              ...Object.keys(environment).flatMap((name) => ['-o', `SendEnv=${name}`]),
              ...command,
            ],
            { env: { ...process.env, ...environment } },
          ),
        );
      }
      if (connection.dialErrorLimit !== -1 && failures >= connection.dialErrorLimit) {
        throw new Error(`after ${failures} failed attempts: ${failure}`);
      }
    } finally {
      master.kill();
      process.off('exit', endWithUs);
      rmSync(folder, { recursive: true, force: true });
    }
    const limit = connection.dialErrorLimit === -1 ? 'inf' : connection.dialErrorLimit;
    status(`Dial ${failures + 1}/${limit} failed: retrying`);
    await sleep(Math.min(100 * 1.5 ** failures, 5000));
  }
}

async function loginFailureOf(master: ChildProcess): Promise<string | undefined> {
  let said = '';
  master.stderr?.on('data', (text: Buffer) => {
    said += text;
  });
  return new Promise((resolve, reject) => {
    master.on('error', reject);
    master.stdout?.on('data', () => resolve(undefined));
    master.on('close', (code) => resolve(said.trim() || `ssh ended with status ${code}`));
  });
}

async function refuseUnusable(connection: Connection): Promise<void> {
  for (const endpoint of [connection, ...(connection.proxy ? [connection.proxy] : [])]) {
    if (endpoint.password ?? endpoint.privateKeyPassword) {
      throw new Error('the stand-in logs in with an unencrypted key or an agent only, not with a password');
    }
    const socket = endpoint.agentSocketPath ?? process.env.SSH_AUTH_SOCK;
    if (!socket) continue;
    // The official plugin fails on an agent that does not answer, even where a key is given.
    await new Promise<void>((resolve, reject) => {
      const dial = net.connect(socket, () => resolve(void dial.end()));
      dial.on('error', (error: NodeJS.ErrnoException) =>
        reject(new Error(`dial unix ${socket}: ${error.code}`)),
      );
    });
  }
}

function optionsFor(connection: Connection, folder: string): string[] {
  const { proxy, ...target } = connection;
  const options = endpointOptions(target, folder, 'target');
  if (!proxy) return options;
  const jump = ['ssh', ...endpointOptions(proxy, folder, 'proxy'), '-W', '%h:%p', proxy.host];
  return [...options, '-o', `ProxyCommand=${jump.map(quoted).join(' ')}`];
}

function endpointOptions(endpoint: Endpoint, folder: string, role: 'target' | 'proxy'): string[] {
  const options: Record<string, string | number> = {
    BatchMode: 'yes',
    LogLevel: 'ERROR',
    User: endpoint.user,
    Port: endpoint.port,
    IdentityAgent: endpoint.agentSocketPath ?? process.env.SSH_AUTH_SOCK ?? 'none',
    IdentityFile: 'none',
    GlobalKnownHostsFile: '/dev/null',
    UserKnownHostsFile: '/dev/null',
    StrictHostKeyChecking: 'no',
    ConnectTimeout: endpoint.perDialTimeout,
  };
  if (endpoint.perDialTimeout === 0) delete options.ConnectTimeout;
  if (endpoint.privateKey) {
    options.IdentityFile = path.join(folder, `${role}-key`);
    writeFileSync(options.IdentityFile, `${endpoint.privateKey.trimEnd()}\n`, { mode: 0o600 });
  }
  if (endpoint.hostKey) {
    const algorithm = endpoint.hostKey.trim().split(/\s+/)[0] ?? '';
    // The official plugin offers the signature named like the key, which for RSA is the retired SHA-1 one.
    options.HostKeyAlgorithms = algorithm;
    options.StrictHostKeyChecking = 'yes';
    options.UserKnownHostsFile = path.join(folder, `${role}-known-hosts`);
    writeFileSync(options.UserKnownHostsFile, `* ${endpoint.hostKey.trim()}\n`);
  }
  return ['-F', 'none', ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])];
}

function quoted(word: string): string {
  return /^[\w%:=./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
