import { homedir } from 'node:os';
import { join } from 'node:path';

/** Where labs keep what is made once and used again, and what a running lab consists of; outside the checkout. */
export function labCache(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'slot', 'lab');
}
