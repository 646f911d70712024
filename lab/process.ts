import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** A process that cannot be mistaken for a later one with the same number. */
export const processIdentity = z.strictObject({
  pid: z.number(),
  /** Clock ticks between the machine's boot and the start of the process. */
  startTime: z.number(),
});
export type ProcessIdentity = z.infer<typeof processIdentity>;

/** Throws when no process has this number. */
export function identifyProcess(pid: number): ProcessIdentity {
  const startTime = startTimeOf(pid);
  if (startTime === undefined) throw new Error(`no process has the number ${pid}`);
  return { pid, startTime };
}

export function isAlive({ pid, startTime }: ProcessIdentity): boolean {
  return startTimeOf(pid) === startTime;
}

function startTimeOf(pid: number): number | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The second field is the program's name in parentheses, which may itself hold blanks and parentheses.
  const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return state === 'Z' ? undefined : Number(rest[18]);
}
