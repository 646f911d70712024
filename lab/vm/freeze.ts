import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { quoteForShell } from '../ssh.ts';
import type { Machine } from './machine.ts';

/** Writes a running guest, all but its memory (a shared file already), to `stateFile` and ends its QEMU. */
export async function freeze({ qmp }: Machine, stateFile: string): Promise<void> {
  await qmp.execute('stop');
  await leaveMemoryInItsFile({ qmp });
  await qmp.execute('migrate', { uri: `exec:cat >${quoteForShell(stateFile)}` });
  // The command returns at once; the migration goes on behind it.
  const migration = z.object({ status: z.string().default('none'), 'error-desc': z.string().optional() });
  for (;;) {
    const { status, 'error-desc': reason } = migration.parse(await qmp.execute('query-migrate'));
    if (status === 'completed') break;
    if (status === 'failed')
      throw new Error(
        `QEMU could not write the guest's state to ${stateFile}: ${reason ?? 'no reason given'}`,
      );
    await sleep(20);
  }
  await qmp.execute('quit');
  qmp.close();
}

/** Lets a machine that was launched as `incoming` go on where the frozen guest stood. */
export async function thaw({ qmp }: Machine, stateFile: string): Promise<void> {
  await leaveMemoryInItsFile({ qmp });
  await qmp.execute('migrate-incoming', { uri: `exec:cat ${quoteForShell(stateFile)}` });
  const state = z.object({ status: z.string() });
  while (state.parse(await qmp.execute('query-status')).status === 'inmigrate') await sleep(20);
  await qmp.execute('cont');
}

async function leaveMemoryInItsFile({ qmp }: Pick<Machine, 'qmp'>): Promise<void> {
  await qmp.execute('migrate-set-capabilities', {
    capabilities: [{ capability: 'x-ignore-shared', state: true }],
  });
}
