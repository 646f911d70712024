import { existsSync } from 'node:fs';
import * as z from 'zod';
import { hostNamed } from '../components/stack-files.ts';
import { stacksIn } from '../components/stack-list.ts';
import { asRoot, type RunResult, runOnHost, shellWord } from '../remote/ssh.ts';
import type { HostConfig } from '../shape/host.ts';
import { slotProgram } from '../shape/names.ts';
import { UsageError } from './usage.ts';

// One host file is parsed: compiling code for that takes longer than it saves, 8 ms of a status.
z.config({ jitless: true });

/** A rollback loads an engine, preflight tries one's image: minutes. */
export const longSeconds = 2 * 3600;

/** Prints what the host's own `slot status` says. */
export async function status(folder: string, name: string | undefined, json: boolean): Promise<number> {
  return callHost(hostOf(folder, name), ['status', ...(json ? ['--json'] : [])], {});
}

export async function rollback(folder: string, name: string | undefined): Promise<number> {
  const host = hostOf(folder, name);
  return callHost(host, ['rollback'], { timeoutSeconds: longSeconds });
}

export async function forgive(folder: string, release: string, name: string | undefined): Promise<number> {
  return callHost(hostOf(folder, name), ['release', 'forgive', release], {});
}

export interface HostCall {
  /** Text for the host program's standard input. */
  readonly input?: string;
  /** Default 60. */
  readonly timeoutSeconds?: number;
}

/** Runs the host's own program as root and passes on what it prints and its exit code. */
export async function callHost(host: HostConfig, words: readonly string[], call: HostCall): Promise<number> {
  const answer = await askHost(host, [...words, '--service', host.service], call);
  process.stdout.write(answer.stdout);
  return answer.exitCode;
}

/** Runs the host's own program as root; what it says of its progress is passed on, its answer is not. */
export function askHost(host: HostConfig, words: readonly string[], call: HostCall): Promise<RunResult> {
  const command = [slotProgram, ...words].map(shellWord).join(' ');
  const onStderr = (text: string) => process.stderr.write(text);
  return runOnHost(host, asRoot(host.user, command), { ...call, onStderr });
}

/** The named host, or the one there is. */
export function hostOf(folder: string, name: string | undefined): HostConfig {
  if (name !== undefined) return hostNamed(folder, name);
  if (!existsSync(folder)) throw new UsageError(`${folder}: there is no such folder`);
  const names = stacksIn(folder, 'host');
  const [only] = names;
  if (only !== undefined && names.length === 1) return hostNamed(folder, only);
  const choice =
    names.length === 0
      ? 'there is no host file (Pulumi.<host>.yaml with slot:host)'
      : `say which host: ${names.join(', ')}`;
  throw new UsageError(`${folder}: ${choice}`);
}
