import { mkdtempSync, rmSync } from 'node:fs';
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { status } from '../cli/host-program.ts';
import { plan } from '../cli/plan.ts';
import { type Phase, phases } from '../shape/inspection.ts';
import { describe, prepareToolchain } from '../toolchain/prepare.ts';
import type { LabKind } from './host.ts';
import { canRunLab } from './lab.ts';
import { hostChanges, hostStack, type LabPlace, laidOver, shapeChanges, shapeStacks } from './overlay.ts';
import { openStage, type Stage } from './stage.ts';
import type { PulumiRun } from './workplace.ts';

/*
 * The main job, told for somebody who tries it: shapes take turns on a real systemd and podman host, driven by
 * the real engine of Pulumi. The model is the lab's double; all else is what an operator has.
 */

const glm = 'glm-w4a16';
const qwen = 'qwen-fp8-mtp4';

/** Silence after which a step says that it goes on. */
const heartbeatSeconds = 10;
const probeIntervalMs = 10;
/** Pulumi shows the lines of one moment in any order: they are held so long, and shown in their own. */
const orderingMs = 500;

/** Seconds that a step takes, measured on two cores. */
const expectedSeconds: Readonly<Record<LabKind, Record<'host' | 'up' | 'preview', string>>> = {
  nspawn: { host: '20 s', up: '20 s', preview: '5 s' },
  vm: { host: '1 min', up: '2 min', preview: '20 s' },
};

const began = Date.now();
let step = 0;

/** Seconds that a program of Pulumi has to end after the host before it has gone. */
const endingSeconds = 20;
/** The run of Pulumi that goes on. */
let running: Promise<unknown> = Promise.resolve();
let saidAt = began;
let isEnding = false;

/** Whatever is made for the moment goes with this folder, however the demo ends. */
const temporary = mkdtempSync(join(tmpdir(), 'slot-demo-'));
process.env.TMPDIR = temporary;
process.on('exit', () => rmSync(temporary, { recursive: true, force: true, maxRetries: 5 }));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, async () => {
    if (isEnding) return;
    isEnding = true;
    say(`\n${signal}: everything is taken down`);
    // The lab goes by a listener of its own, and then what spoke to it.
    await Promise.race([running.catch(() => undefined), sleep(endingSeconds * 1000)]);
    process.exit(128 + constants.signals[signal]);
  });
}

async function demo(): Promise<void> {
  const stage = await firstStage();
  if (stage === undefined) return showPlans();
  const clients = new Clients(stage.lab.engineUrl);
  let outages: readonly string[];
  try {
    outages = await story(stage, clients);
  } finally {
    clients.leave();
    await stage.close();
  }
  say(`\nShown in ${elapsed()} on a lab host (${stage.lab.kind}) with real systemd, podman, ssh and Pulumi:`);
  say('  a bare host set up, an empty slot taken, a preview that changes nothing, a cutover that is proved,');
  say('  a shape that fails and what served before coming back by itself, a rollback by stack switch.');
  say('Without an answer for clients (the model is a double that loads 2 s; a real one loads minutes):');
  for (const outage of outages) say(`  ${outage}`);
  say('Everything was taken down. Your own host: README.md, "The first day on your own host".');
}

/** @returns a line for each outage that clients saw */
async function story({ lab, workplace, toolchain }: Stage, clients: Clients): Promise<string[]> {
  const expected = expectedSeconds[lab.kind];
  const outages: string[] = [];
  const measured = async (what: string, change: Promise<void>): Promise<void> => {
    clients.forget();
    await change;
    outages.push(`${clients.longestGapSeconds().toFixed(2).padStart(6)} s  ${what}`);
    say(`  ${await clients.ask()}; without an answer for ${clients.longestGapSeconds().toFixed(2)} s`);
  };

  const up = async (stack: string, failure?: string): Promise<void> => {
    const run = toBeAwaited(workplace.startUp(stack, '--yes', '--non-interactive'));
    const lines = new AgentLines();
    const whole: string[] = [];
    for await (const line of run.iterable({ from: 'all' })) {
      whole.push(line);
      lines.take(line);
    }
    const { exitCode } = await run;
    lines.flush();
    const output = whole.join('\n');
    if (failure === undefined ? exitCode !== 0 : !output.includes(failure)) {
      throw new Error(`pulumi up -s ${stack} ended with ${exitCode}:\n${output}`);
    }
  };

  title(`pulumi up -s ${hostStack}: a bare host is set up`, expected.host);
  excerpt(succeeded(await toBeAwaited(workplace.up(hostStack))), /^Outputs:/, 9);

  title(`pulumi up -s ${qwen}: a shape takes the empty slot`, expected.up);
  await up(qwen);
  say(`  ${await clients.ask()}`);
  void clients.watch();

  title(`pulumi preview -s ${glm}: what a reviewer sees; nothing changes on the host`, expected.preview);
  excerpt(succeeded(await toBeAwaited(workplace.preview(glm))), /^ *slot frank-archon on/, 24);
  say('  …');

  title(`pulumi up -s ${glm}: the cutover`, expected.up);
  await measured(`${qwen} → ${glm}`, up(glm));

  title(
    `pulumi up -s ${qwen}, but it answers 200 with an empty text: it fails and ${glm} comes back`,
    expected.up,
  );
  await workplace.lay(qwen, [
    [['config', 'slot:shape', 'environment', 'LAB_ENGINE_FAULT'], 'empty-completions'],
  ]);
  await measured(`${glm} → broken ${qwen} → ${glm}, by itself`, up(qwen, 'restored at prove: completion'));
  say('  The next preview of it says so:');
  excerpt((await toBeAwaited(workplace.preview(qwen))).output, /refused, nothing was touched/, 3);

  title(`pulumi up -s ${qwen}, repaired: going back is a stack switch`, expected.up);
  await workplace.lay(qwen);
  await measured(`${glm} → ${qwen}, rolled back by stack switch`, up(qwen));

  title(`slot status ${hostStack}`, '1 s');
  await status(workplace.folder, hostStack, false);
  if (toolchain.report.some(({ from }) => from === 'stand-in')) {
    say('  (Plugins of Pulumi were stood in for: see the tool chain above.)');
  }
  return outages;
}

/** A stage on the first kind of lab that this machine can run; undefined: on none, which it says with reasons. */
async function firstStage(): Promise<Stage | undefined> {
  title('the tool chain', 'seconds; minutes where no Pulumi can be had and it is built, once');
  const said = new Set<string>();
  const progress = (line: string) => {
    if (!said.has(line)) say(indented(line));
    said.add(line);
  };
  try {
    const { report } = await prepareToolchain({ progress });
    say(indented(describe(report)));
  } catch (error) {
    say(indented(`no tool chain: ${messageOf(error)}`));
    return undefined;
  }
  for (const kind of ['nspawn', 'vm'] as const) {
    title(`a lab host of kind ${kind}`, 'seconds; the first on a machine minutes, once');
    const ability = await canRunLab(kind, progress);
    if (!ability.ok) {
      say(indented(ability.reason));
      continue;
    }
    try {
      return await openStage({ kind, progress });
    } catch (error) {
      say(indented(`it does not come up: ${messageOf(error)}`));
    }
  }
  return undefined;
}

/** What can be shown without a host: each shape as it would be rendered, with example values for what is not on record. */
async function showPlans(): Promise<void> {
  say(
    '\nNo lab can run here, for the reasons above. This is the plan of all shapes instead (`npx slot plan`),',
  );
  say('with example values for what only an operator knows.');
  const example: LabPlace = {
    kind: 'vm',
    address: '192.0.2.7',
    sshPort: 22,
    user: 'dank',
    hostKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
    privateKeyPath: '~/.ssh/id_ed25519',
  };
  const images = {
    repository: 'registry.example/engine',
    vllm: `sha256:${'1'.repeat(64)}`,
    r9v: `sha256:${'2'.repeat(64)}`,
  };
  for (const data of ['models', 'images']) {
    await symlink(join(import.meta.dirname, '..', data), join(temporary, data));
  }
  await write(hostStack, hostChanges(example));
  for (const stack of shapeStacks) {
    title(`npx slot plan ${stack}`, '1 s');
    await write(stack, shapeChanges(stack, example, images, temporary));
    await plan(temporary, [stack]);
  }

  async function write(stack: string, changes: Parameters<typeof laidOver>[1]): Promise<void> {
    const file = `Pulumi.${stack}.yaml`;
    const text = await readFile(join(import.meta.dirname, '..', file), 'utf8');
    await writeFile(join(temporary, file), laidOver(text, changes));
  }
}

const modelsSchema = z.object({ data: z.array(z.object({ id: z.string() })).min(1) });
const answerSchema = z.object({
  choices: z.array(z.object({ message: z.object({ content: z.string().nullish() }) })).min(1),
});

/** What clients of the endpoint see, who know only its public name. */
class Clients {
  readonly #url: string;
  #leaving = false;
  #lastGood = 0;
  #longestGap = 0;

  constructor(url: string) {
    this.#url = url;
  }

  /** Asks for the served names until `leave`. */
  async watch(): Promise<void> {
    this.#lastGood = Date.now();
    for (; !this.#leaving; await sleep(probeIntervalMs)) {
      const isGood = await this.#get('/v1/models', 1000).then(
        (answer) => modelsSchema.safeParse(answer).success,
        () => false,
      );
      if (!isGood) continue;
      const now = Date.now();
      this.#longestGap = Math.max(this.#longestGap, now - this.#lastGood);
      this.#lastGood = now;
    }
  }

  leave(): void {
    this.#leaving = true;
  }

  forget(): void {
    this.#longestGap = 0;
  }

  /** From a good answer to the next one, since `forget`. */
  longestGapSeconds(): number {
    return this.#longestGap / 1000;
  }

  async ask(): Promise<string> {
    const question = 'What is 2+2?';
    const body = { model: 'wire', max_tokens: 200, messages: [{ role: 'user', content: question }] };
    const { data } = modelsSchema.parse(await this.#get('/v1/models', 10_000));
    const { choices } = answerSchema.parse(await this.#get('/v1/chat/completions', 10_000, body));
    return `"wire" is ${data[0]?.id}; asked "${question}" it answers "${choices[0]?.message.content}"`;
  }

  async #get(path: string, limitMs: number, body?: object): Promise<unknown> {
    const response = await fetch(`${this.#url}${path}`, {
      signal: AbortSignal.timeout(limitMs),
      ...(body && {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    });
    if (!response.ok) throw new Error(`${path}: status ${response.status}`);
    return response.json();
  }
}

/** The host's own progress lines out of Pulumi's output, each once. */
class AgentLines {
  readonly #known = new Set<string>();
  #held: string[] = [];
  #timer: NodeJS.Timeout | undefined;

  take(line: string): void {
    const text = /\[ *[\d.]+ s\] [a-z-]+: .*/.exec(line)?.[0];
    if (text === undefined || this.#known.has(text)) return;
    this.#known.add(text);
    this.#held.push(text);
    this.#timer ??= globalThis.setTimeout(() => this.flush(), orderingMs);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const text of this.#held.sort((a, b) => orderOf(a) - orderOf(b))) say(`  ${text}`);
    this.#held = [];
  }
}

/** By the elapsed tenths of a second, and within one by the phase. */
function orderOf(line: string): number {
  const [, seconds, phase] = /^\[ *([\d.]+) s\] ([a-z-]+):/.exec(line) ?? [];
  return Number(seconds) + phases.indexOf(phase as Phase) / 1000;
}

function succeeded({ exitCode, output }: PulumiRun): string {
  if (exitCode !== 0) throw new Error(`pulumi ended with ${exitCode}:\n${output}`);
  return output;
}

/** Shows at most `count` lines from the last that matches on: an update comes after its preview. */
function excerpt(output: string, first: RegExp, count: number): void {
  const lines = output.split('\n');
  const start = lines.findLastIndex((line) => first.test(line));
  if (start === -1) throw new Error(`nothing like ${first} was said:\n${output}`);
  say(indented(lines.slice(start, start + count).join('\n')));
}

function title(text: string, expected: string): void {
  step += 1;
  say(`\n${step}. ${text}\n   (${elapsed()} since the start; expected: ${expected})`);
}

function elapsed(): string {
  const seconds = Math.round((Date.now() - began) / 1000);
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, '  ');
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** An interrupted demo waits for it. */
function toBeAwaited<T extends Promise<unknown>>(run: T): T {
  running = run;
  return run;
}

function say(text: string): void {
  saidAt = Date.now();
  process.stdout.write(`${text}\n`);
}

const heartbeat = setInterval(() => {
  if (Date.now() - saidAt >= heartbeatSeconds * 1000) say(`  … goes on, ${elapsed()} since the start`);
}, 1000);
try {
  await demo();
} catch (error) {
  // After a signal this is but the host that is gone.
  if (!isEnding) {
    say(messageOf(error));
    process.exitCode = 1;
  }
} finally {
  clearInterval(heartbeat);
}
