import { type ExecFileException, execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HostConfig } from '../shape/host.ts';

/**
 * One machine that answers to ssh. The address is a host name or an IP address, taken literally: Pulumi's own
 * connections do not read `~/.ssh/config`, so neither does this, and both reach the same machine.
 */
export type SshEndpoint = Pick<HostConfig, 'address' | 'sshPort' | 'user' | 'hostKey'>;

/** How the operator's side reaches a host. The key, or else the agent at SSH_AUTH_SOCK, opens the jump host too. */
export type SshTarget = SshEndpoint & Pick<HostConfig, 'privateKeyPath' | 'jumpHost'>;

export interface RunOptions {
  /** Text for the command's standard input; default none (/dev/null). */
  readonly input?: string;
  /** The connection and the command together, in seconds; default 60. */
  readonly timeoutSeconds?: number;
  /** Called with the command's standard error as it comes; the result has all of it as well. */
  readonly onStderr?: (text: string) => void;
}

export interface RunResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * unreachable: no connection, nothing was sent. host-key: the machine answered with another key than the
 * configured one, nothing was sent. permission: the login was refused. lost: the command may have begun, its
 * end is not known.
 */
export type SshFailureKind = 'unreachable' | 'host-key' | 'permission' | 'lost';

export class SshFailure extends Error {
  readonly kind: SshFailureKind;

  constructor(kind: SshFailureKind, message: string) {
    super(message);
    this.name = 'SshFailure';
    this.kind = kind;
  }
}

const connectTimeoutSeconds = 10;
/** A dead line is noticed after this many unanswered probes, one every `aliveIntervalSeconds`. */
const aliveProbes = 3;
const aliveIntervalSeconds = 5;

/**
 * Runs a command line through the login's shell on the target, over one connection of the system's `ssh`. An
 * exit code of the command, whatever it is, is a result.
 * @throws SshFailure when there was no connection, or the command's end is not known
 */
export async function runOnHost(
  target: SshTarget,
  command: string,
  options: RunOptions = {},
): Promise<RunResult> {
  const { input, timeoutSeconds = 60, onStderr } = options;
  const folder = await mkdtemp(join(tmpdir(), 'slot-ssh-'));
  try {
    const files = filesIn(folder);
    await writeFile(files.knownHosts, knownHostsOf(target));
    const run = await runSsh(sshArguments(target, command, files), { input, timeoutSeconds, onStderr });
    const log = await readFile(files.log, 'utf8').catch(() => '');
    const jumpLog = await readFile(files.jumpLog, 'utf8').catch(() => '');
    const timedOutAfter = run.timedOut ? timeoutSeconds : undefined;
    const failure = failureIn(target, { log, jumpLog, timedOutAfter });
    if (failure) throw failure;
    return { exitCode: run.exitCode ?? 255, stdout: run.stdout, stderr: run.stderr };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface SshRun {
  /** Undefined when ssh did not end by itself. */
  readonly exitCode: number | undefined;
  readonly timedOut: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

const mostOutputBytes = 64 * 1024 * 1024;

/** Node's own means: a library for it takes 60 to 85 ms to load, in every status and preview. */
function runSsh(
  args: readonly string[],
  {
    input,
    timeoutSeconds,
    onStderr,
  }: { input: string | undefined; timeoutSeconds: number; onStderr: RunOptions['onStderr'] | undefined },
): Promise<SshRun> {
  return new Promise((resolve, reject) => {
    const ended = (error: ExecFileException | null, stdout: string, stderr: string) => {
      if (child.pid === undefined) {
        const reason = error?.message ?? 'unknown reason';
        reject(new SshFailure('unreachable', `cannot start the system's ssh: ${reason}`));
      } else if (error?.code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') {
        reject(
          new SshFailure('lost', `the command printed more than ${mostOutputBytes} bytes and was given up`),
        );
      } else {
        const exitCode = error === null ? 0 : typeof error.code === 'number' ? error.code : undefined;
        resolve({ exitCode, timedOut: error?.killed ?? false, stdout, stderr });
      }
    };
    const limits = { timeout: timeoutSeconds * 1000, maxBuffer: mostOutputBytes };
    const child = execFile('ssh', args, limits, ended);
    if (onStderr !== undefined) child.stderr?.on('data', onStderr);
    // A command that does not read its input ends all the same.
    child.stdin?.on('error', () => undefined).end(input);
  });
}

/** The command line as root sees it: through `sudo -n`, which never asks, unless the login is root. */
export function asRoot(user: string, command: string): string {
  return user === 'root' ? command : `sudo -n ${command}`;
}

/** A configured path may begin with `~/`, so that one host file serves several operators. */
export function privateKeyFile(configured: string): string {
  return configured.startsWith('~/') ? join(homedir(), configured.slice(2)) : configured;
}

/** One word for a POSIX shell, whatever is in it. */
export function shellWord(text: string): string {
  return /^[A-Za-z0-9_\-+=:,./@]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** As `ssh-keygen -l` shows it, from the `type base64` form of a public key. */
export function fingerprintOf(hostKey: string): string {
  const blob = Buffer.from(hostKey.split(' ')[1] ?? '', 'base64');
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}

interface SshFiles {
  readonly knownHosts: string;
  readonly log: string;
  readonly jumpLog: string;
}

function filesIn(folder: string): SshFiles {
  return {
    knownHosts: join(folder, 'known_hosts'),
    log: join(folder, 'log'),
    jumpLog: join(folder, 'jump-log'),
  };
}

const targetAlias = 'slot-target';
const jumpAlias = 'slot-jump';

export function knownHostsOf(target: SshTarget): string {
  const jump = target.jumpHost ? `${jumpAlias} ${target.jumpHost.hostKey}\n` : '';
  return `${targetAlias} ${target.hostKey}\n${jump}`;
}

export function sshArguments(target: SshTarget, command: string, files: SshFiles): string[] {
  const through = target.jumpHost
    ? [
        ...endpointOptions(
          target.jumpHost,
          target.privateKeyPath,
          jumpAlias,
          files.knownHosts,
          files.jumpLog,
        ),
        '-W',
        `[${target.address}]:${target.sshPort}`,
        target.jumpHost.address,
      ]
    : undefined;
  return [
    ...endpointOptions(target, target.privateKeyPath, targetAlias, files.knownHosts, files.log),
    // ssh hands the text to a shell after it has replaced its own percent tokens.
    ...(through ? ['-o', `ProxyCommand=ssh ${through.map(shellWord).join(' ').replaceAll('%', '%%')}`] : []),
    '-T',
    '--',
    target.address,
    command,
  ];
}

function endpointOptions(
  endpoint: SshEndpoint,
  privateKeyPath: string | undefined,
  alias: string,
  knownHosts: string,
  log: string,
): string[] {
  const options = {
    BatchMode: 'yes',
    StrictHostKeyChecking: 'yes',
    HostKeyAlias: alias,
    HostKeyAlgorithms: endpoint.hostKey.split(' ')[0] ?? '',
    UserKnownHostsFile: pathValue(knownHosts),
    GlobalKnownHostsFile: '/dev/null',
    CheckHostIP: 'no',
    UpdateHostKeys: 'no',
    ConnectTimeout: connectTimeoutSeconds,
    ServerAliveInterval: aliveIntervalSeconds,
    ServerAliveCountMax: aliveProbes,
    PreferredAuthentications: 'publickey',
    IdentitiesOnly: privateKeyPath === undefined ? 'no' : 'yes',
    IdentityFile: privateKeyPath === undefined ? 'none' : pathValue(privateKeyFile(privateKeyPath)),
    ...(privateKeyPath === undefined ? {} : { IdentityAgent: 'none' }),
    // At this level the log states the command's exit status: a 255 of the command is told from one of ssh.
    LogLevel: 'DEBUG1',
  };
  return [
    '-F',
    'none',
    '-E',
    log,
    ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]),
    '-p',
    String(endpoint.sshPort),
    '-l',
    endpoint.user,
  ];
}

/** ssh splits such values at spaces and replaces percent tokens in them. */
function pathValue(path: string): string {
  return `"${path.replaceAll('%', '%%')}"`;
}

/** Reads ssh's own log: why there was no connection or no end of the command, or undefined if the command ended. */
export function failureIn(
  target: SshTarget,
  seen: { log: string; jumpLog: string; timedOutAfter: number | undefined },
): SshFailure | undefined {
  if (/^debug1: Exit status \d+/m.test(seen.log)) return undefined;
  const place = placeOf(target);
  if (/^Authenticated to /m.test(seen.log)) {
    const reason = /rtype exit-signal/.test(seen.log) ? 'killed by a signal' : lastWords(seen.log);
    return new SshFailure(
      'lost',
      seen.timedOutAfter === undefined
        ? `${place}: the command's end is not known (${reason ?? 'the host closed the connection'})`
        : `${place}: the command did not end within ${seen.timedOutAfter} s`,
    );
  }
  const late = seen.timedOutAfter === undefined ? undefined : `no answer within ${seen.timedOutAfter} s`;
  if (target.jumpHost && !/^Authenticated to /m.test(seen.jumpLog)) {
    return beforeLogin(
      target.jumpHost,
      target.privateKeyPath,
      `jump host ${placeOf(target.jumpHost)}`,
      seen.jumpLog,
      late ?? lastWords(seen.jumpLog),
    );
  }
  // Whether the target can be reached from there, only the jump host knows.
  return beforeLogin(
    target,
    target.privateKeyPath,
    place,
    seen.log,
    late ?? lastWords(seen.jumpLog) ?? lastWords(seen.log),
  );
}

function beforeLogin(
  endpoint: SshEndpoint,
  privateKeyPath: string | undefined,
  place: string,
  log: string,
  reason: string | undefined,
): SshFailure {
  if (/Host key verification failed|no matching host key type found/.test(log)) {
    const type = endpoint.hostKey.split(' ')[0];
    const offered =
      log.match(/^debug1: Server host key: \S+ (SHA256:\S+)/m)?.[1] ??
      `no ${type} key (${log.match(/Their offer: (.*)/)?.[1]?.trim() ?? 'its offer is not known'})`;
    return new SshFailure(
      'host-key',
      `${place}: host key changed, nothing was sent\n` +
        `  configured hostKey: ${fingerprintOf(endpoint.hostKey)} (${type})\n` +
        `  the machine's key:  ${offered}\n` +
        '  If the host was installed anew, compare with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on its ' +
        'console, then change hostKey in the host file; otherwise somebody else answers at this address.',
    );
  }
  if (/Permission denied|Too many authentication failures|No more authentication methods/.test(log)) {
    const identity =
      privateKeyPath === undefined
        ? 'the keys of the agent at SSH_AUTH_SOCK (`ssh-add -l` lists them)'
        : `the key ${privateKeyPath} (a key with a passphrase must come from the agent)`;
    return new SshFailure('permission', `${place}: login refused with ${identity}`);
  }
  if (/Could not resolve hostname/.test(log)) {
    return new SshFailure(
      'unreachable',
      `${place}: the name is not known. Aliases of ~/.ssh/config are not read, because Pulumi's connection does ` +
        `not read them either: take hostname, port, user and proxyjump from \`ssh -G ${endpoint.address}\``,
    );
  }
  return new SshFailure('unreachable', `${place}: not reachable (${reason ?? 'ssh gave no reason'})`);
}

function placeOf(endpoint: SshEndpoint): string {
  const address = endpoint.address.includes(':') ? `[${endpoint.address}]` : endpoint.address;
  return `${endpoint.user}@${address}:${endpoint.sshPort}`;
}

/** What ssh itself said last, without the notes of its log level. */
function lastWords(log: string): string | undefined {
  const lines = log
    .split('\n')
    .map((line) => line.trim())
    .filter(
      (line) =>
        line !== '' &&
        !/^(debug\d|OpenSSH_|Authenticated to|Transferred:|Bytes per second|stdio forwarding failed)/.test(
          line,
        ),
    );
  return lines.at(-1);
}
