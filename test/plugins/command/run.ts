import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import type { Status } from '../provider.ts';

export interface Finished {
  stdout: string;
  stderr: string;
  /** Both in the order in which they came. */
  output: string;
  code: number | null;
  signal: NodeJS.Signals | null;
}
export type Logging = 'stdout' | 'stderr' | 'stdoutAndStderr' | 'none';

/** Follows a started program to its end, showing each line that `logging` names while it comes. */
export async function follow(
  child: ChildProcess,
  stdin: string | undefined,
  logging: Logging | undefined,
  status: Status,
): Promise<Finished> {
  const texts = { stdout: '', stderr: '', output: '' };
  const shown = new PassThrough();
  createInterface({ input: shown }).on('line', status);
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
      texts.output += text;
      if ((logging ?? 'stdoutAndStderr').toLowerCase().includes(name)) shown.write(text);
    });
  }
  // A program may end without reading all that it is given.
  child.stdin?.on('error', () => {});
  child.stdin?.end(stdin ?? '');
  const end = await new Promise<Pick<Finished, 'code' | 'signal'>>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal }));
  });
  shown.end();
  return { ...texts, ...end };
}

/** The outputs of a program that succeeded; an error with the command and its whole output for one that did not. */
export function outputsOf(
  finished: Finished,
  command: string,
  failure: string,
): { stdout: string; stderr: string } {
  if (finished.code !== 0)
    throw new Error(`${failure}: running ${JSON.stringify(command)}:\n${finished.output}`);
  return { stdout: finished.stdout.replace(/\n$/, ''), stderr: finished.stderr.replace(/\n$/, '') };
}
