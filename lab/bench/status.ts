import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { knownHostsOf, sshArguments } from '../../remote/ssh.ts';
import type { HostConfig } from '../../shape/host.ts';
import type { Stage } from '../stage.ts';
import { byTurns } from './by-turns.ts';
import type { Measure } from './measure.ts';

const program = join(import.meta.dirname, '..', '..', 'cli', 'main.ts');

/** `slot status` of the host file, against `ssh host true` with the options that it uses. Qwen must serve. */
export async function measureStatus(
  { workplace }: Stage,
  host: HostConfig,
  rounds: number,
): Promise<Measure> {
  const folder = await mkdtemp(join(tmpdir(), 'slot-bench-'));
  try {
    const files = {
      knownHosts: join(folder, 'known_hosts'),
      log: join(folder, 'log'),
      jumpLog: join(folder, 'jump-log'),
    };
    await writeFile(files.knownHosts, knownHostsOf(host));
    const { product, floor } = await byTurns(
      rounds,
      async () => {
        const words = [program, 'status', host.name, '--folder', workplace.folder];
        const { stdout } = await execa(process.execPath, words, { stdin: 'ignore' });
        if (!stdout.includes('is serving')) throw new Error(`slot status: nothing serves: ${stdout}`);
      },
      async () => void (await execa('ssh', sshArguments(host, 'true', files), { stdin: 'ignore' })),
    );
    return {
      title: 'slot status from the operator’s machine',
      product: { what: 'slot status', seconds: product },
      floor: { what: 'ssh host true', seconds: floor },
      limit: { kind: 'difference', atMostSeconds: 0.5 },
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
