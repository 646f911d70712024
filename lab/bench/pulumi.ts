import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { bracketed, sshOptionsOf } from '../../components/engine-image.ts';
import type { HostConfig } from '../../shape/host.ts';
import type { Stage } from '../stage.ts';
import type { PulumiRun } from '../workplace.ts';
import { byTurns } from './by-turns.ts';
import type { Measure } from './measure.ts';

const emptyProgram = join(import.meta.dirname, 'empty-program');
const limit = { kind: 'ratio', atMost: 1.5 } as const;

/** A preview of a cutover, against one of the empty program. Qwen must serve. */
export async function measurePreview(stage: Stage, host: HostConfig, rounds: number): Promise<Measure> {
  const { workplace } = stage;
  const empty = await emptyStack(stage, host);
  const { product, floor } = await byTurns(
    rounds,
    async () => succeeded('pulumi preview', await workplace.preview('glm-w4a16')),
    async () => succeeded('empty preview', await empty('preview', '--diff')),
  );
  return {
    title: 'Preview of a cutover, with the host answering',
    product: { what: 'pulumi preview', seconds: product },
    floor: { what: 'empty program, same providers', seconds: floor },
    limit,
  };
}

/** An `up` of what serves already, against one of the empty program. Qwen must serve. */
export async function measureSecondUp(stage: Stage, host: HostConfig, rounds: number): Promise<Measure> {
  const { workplace } = stage;
  const empty = await emptyStack(stage, host);
  const { product, floor } = await byTurns(
    rounds,
    async () => {
      const run = await workplace.up('qwen-fp8-mtp4');
      succeeded('pulumi up', run);
      if (/\d+ (created|updated|replaced)/.test(run.output))
        throw new Error(`up changed something: ${run.output}`);
    },
    async () => succeeded('empty up', await empty('up', '--yes')),
  );
  return {
    title: 'A second up, without changes',
    product: { what: 'pulumi up', seconds: product },
    floor: { what: 'empty program, same providers', seconds: floor },
    limit,
  };
}

/** Makes the empty program's stack beside the others and returns what runs `pulumi` on it. */
async function emptyStack({ workplace }: Stage, host: HostConfig) {
  const folder = join(workplace.folder, 'empty');
  const file = join(folder, 'Pulumi.empty.yaml');
  if ((await mkdir(folder, { recursive: true })) !== undefined) {
    await writeFile(join(folder, 'Pulumi.yaml'), 'name: empty\nruntime: nodejs\n');
    succeeded('stack init', await workplace.run(['stack', 'init', 'empty'], folder));
    const config = {
      'empty:host': `ssh://${host.user}@${bracketed(host.address)}:${host.sshPort}`,
      'empty:sshOpts': sshOptionsOf(host),
    };
    await writeFile(file, (await readFile(file, 'utf8')) + stringify({ config }));
  }
  return (verb: string, ...more: string[]) =>
    workplace.run([verb, ...more, '--stack', 'empty', '--config-file', file], emptyProgram);
}

function succeeded(what: string, { exitCode, output }: PulumiRun): void {
  if (exitCode !== 0) throw new Error(`${what}: exit ${exitCode}: ${output}`);
}
