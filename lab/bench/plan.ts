import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { planOf } from '../../cli/plan.ts';
import { stacksIn } from '../../components/stack-list.ts';
import { byTurns } from './by-turns.ts';
import type { Measure } from './measure.ts';

const project = join(import.meta.dirname, '..', '..');
const program = join(project, 'cli', 'main.ts');

/** Shapes of the catalogue whose cost is looked at, and of the small one that it is compared with. */
const [many, few] = [200, 10];

/** `slot plan` of every shape of the project, as a whole process, against a process that does nothing. */
export async function measurePlanCommand(rounds: number): Promise<Measure> {
  const shapes = stacksIn(project, 'shape');
  const { product, floor } = await byTurns(
    rounds,
    async () => {
      const { stdout } = await execa(process.execPath, [program, 'plan'], { reject: false, stdin: 'ignore' });
      const planned = shapes.filter((stack) => stdout.includes(`# ${stack}: release `));
      if (planned.length !== shapes.length) throw new Error(`slot plan: only ${planned.join(', ')} planned`);
    },
    async () => void (await execa(process.execPath, ['--eval', ''], { stdin: 'ignore' })),
  );
  return {
    title: `slot plan of all ${shapes.length} shapes, without a host`,
    product: { what: 'slot plan', seconds: product },
    floor: { what: 'node that does nothing', seconds: floor },
    limit: { kind: 'difference', atMostSeconds: 1 },
  };
}

/**
 * Seconds for as many plans, once of a catalogue of 200 different shapes, once of one of 10 that is gone through 20
 * times: what one shape costs must not depend on how many there are. In this process, whose start counts for neither.
 */
export async function measurePlanCatalogue(rounds: number): Promise<Measure> {
  const folder = await mkdtemp(join(tmpdir(), 'slot-catalogue-'));
  try {
    const large = await writeCatalogue(join(folder, 'large'), many);
    const small = await writeCatalogue(join(folder, 'small'), few);
    const { product, floor } = await byTurns(
      rounds,
      async () => planAll(large, 1),
      async () => planAll(small, many / few),
    );
    return {
      title: `${many} plans of as many shapes, against ${many} plans of ${few} shapes`,
      product: { what: `${many} shapes`, seconds: product },
      floor: { what: `${few} shapes, ${many / few} times`, seconds: floor },
      limit: { kind: 'ratio', atMost: 1.3 },
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function planAll(folder: string, times: number): void {
  for (let time = 0; time < times; time += 1) {
    for (const stack of stacksIn(folder, 'shape')) {
      const { isRefused, complaints } = planOf(folder, stack);
      if (isRefused || complaints !== '') throw new Error(`${stack}: ${complaints || 'a rule refuses it'}`);
    }
  }
}

/** Shapes that differ in name, length, sequences, payload and environment, on one host. */
async function writeCatalogue(folder: string, shapes: number): Promise<string> {
  await mkdir(folder);
  await cp(join(project, 'models'), join(folder, 'models'), { recursive: true });
  await cp(join(project, 'images'), join(folder, 'images'), { recursive: true });
  const write = (stack: string, config: object) =>
    writeFile(join(folder, `Pulumi.${stack}.yaml`), JSON.stringify({ config }, null, 2));
  await write('catalogue', {
    'slot:host': {
      name: 'catalogue',
      address: '192.0.2.7',
      hostKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
      service: 'catalogue',
      gpus: ['0000:03:00.0', '0000:07:00.0'],
    },
  });
  for (let index = 0; index < shapes; index += 1) {
    await write(`shape-${index}`, {
      'slot:shape': {
        host: 'catalogue',
        model: 'glm-5.3-flash',
        engine: {
          kind: 'vllm',
          image: {
            repository: 'docker.io/example/vllm',
            digest: `sha256:${index.toString(16).padStart(64, '0')}`,
          },
          servedName: `model-${index}`,
          tensorParallel: 2,
          maxModelLength: 131072 + 1024 * index,
          maxSequences: 1 + (index % 8),
          gpuMemoryUtilization: 0.98,
          expertOffload: true,
          prefixCaching: index % 2 === 0,
          toolParser: 'glm47',
          reasoningParser: 'glm47',
        },
        payload: { folder: `payload-${index}`, quantization: 'auto-round' },
        environment: { VLLM_ENGINE_READY_TIMEOUT_S: '1800', SHAPE: `of ${shapes}, ${index}` },
        limits: { memlock: 'infinity' },
        deadlines: { boot: '25 min' },
      },
    });
  }
  return folder;
}
