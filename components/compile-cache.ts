import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * Keeps the compiled form of what is imported from now on: measured on two cores it takes 110 of 240 ms off the
 * start of `slot status`, and 180 of 320 ms off a preview. An import statement of the same file comes too early.
 */
export function keepCompiledCode(): void {
  enableCompileCache(join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'slot', 'compiled'));
}
