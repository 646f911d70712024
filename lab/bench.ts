import { parseArgs } from 'node:util';
import { hostNamed } from '../components/stack-files.ts';
import type { HostConfig } from '../shape/host.ts';
import { describe } from '../toolchain/prepare.ts';
import { measureHashingStreams, measureHashingXargs, measureReverification } from './bench/hashing.ts';
import { measureInventory } from './bench/inventory.ts';
import { leastRounds, type Measure, reportOf, verdictOf } from './bench/measure.ts';
import { measureOutage } from './bench/outage.ts';
import { measurePlanCatalogue, measurePlanCommand } from './bench/plan.ts';
import { measurePreview, measureSecondUp } from './bench/pulumi.ts';
import { measureStatus } from './bench/status.ts';
import { canRunLab } from './lab.ts';
import { hostStack } from './overlay.ts';
import { openStage, type Stage } from './stage.ts';

type Take = (stage: Stage, host: HostConfig, rounds: number) => Promise<Measure>;

const tell = (line: string) => console.error(line);

/** Of files alone, before a host is made. */
const measuresOfFiles: Readonly<Record<string, (rounds: number) => Promise<Measure>>> = {
  plan: measurePlanCommand,
  catalogue: measurePlanCatalogue,
  inventory: measureInventory,
  hashing: measureHashingStreams,
  'hashing-xargs': measureHashingXargs,
  reverification: measureReverification,
};

const measuresOnHost: Readonly<Record<string, Take>> = {
  outage: (stage, _host, rounds) => measureOutage(stage, rounds, tell),
  preview: measurePreview,
  'second-up': measureSecondUp,
  status: measureStatus,
};

const names = [...Object.keys(measuresOfFiles), ...Object.keys(measuresOnHost)];

const usage = `usage: npm run bench -- [measure …] [--rounds N] [--name LAB]

  measure       ${names.join(', ')}; default all
  --rounds N    counted rounds of each, default ${leastRounds} and not fewer
  --name LAB    of the lab host, default the lowest free of lab-0, lab-1, …`;

/** Exit code 1: a limit is missed. 2: nothing could be measured. */
async function main(words: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: words,
    allowPositionals: true,
    options: { rounds: { type: 'string', default: String(leastRounds) }, name: { type: 'string' } },
  });
  const rounds = Number(values.rounds);
  const unknown = positionals.filter((name) => !names.includes(name));
  if (unknown.length > 0 || !Number.isInteger(rounds) || rounds < leastRounds) {
    console.error(unknown.length > 0 ? `${unknown.join(', ')}: no such measure\n\n${usage}` : usage);
    return 2;
  }
  const wanted = positionals.length === 0 ? names : positionals;
  let allMet = true;
  const told = (measure: Measure): void => {
    console.log(`\n${reportOf(measure)}`);
    allMet &&= verdictOf(measure).isMet;
  };
  for (const [name, take] of Object.entries(measuresOfFiles)) {
    if (!wanted.includes(name)) continue;
    tell(`measuring ${name}`);
    told(await take(rounds));
  }
  const onHost = Object.entries(measuresOnHost).filter(([name]) => wanted.includes(name));
  if (onHost.length > 0) {
    await onLabHost(values.name, async (stage, host) => {
      for (const [name, take] of onHost) {
        tell(`measuring ${name}`);
        told(await take(stage, host, rounds));
      }
    });
  }
  return allMet ? 0 : 1;
}

/** With a lab host on which Qwen serves. */
async function onLabHost(
  name: string | undefined,
  measure: (stage: Stage, host: HostConfig) => Promise<void>,
): Promise<void> {
  const ability = await canRunLab('nspawn', tell);
  if (!ability.ok) throw new Error(ability.reason);
  const stage = await openStage({ kind: 'nspawn', progress: tell, ...(name !== undefined && { name }) });
  try {
    console.log(describe(stage.toolchain.report));
    for (const stack of [hostStack, 'qwen-fp8-mtp4']) {
      tell(`pulumi up on ${stack}`);
      const { exitCode, output } = await stage.workplace.up(stack);
      if (exitCode !== 0) throw new Error(`pulumi up on ${stack}: ${output}`);
    }
    await measure(stage, hostNamed(stage.workplace.folder, hostStack));
  } finally {
    await stage.close();
  }
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}
