import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import type { Toolchain } from '../../toolchain/prepare.ts';

/** What the program of the suite is to create. */
export interface Wanted {
  resources: Record<
    string,
    {
      type:
        | 'remote.Command'
        | 'remote.CopyToRemote'
        | 'local.Command'
        | 'docker.Provider'
        | 'docker.RemoteImage';
      args: Record<string, unknown>;
      /** Name of the provider resource, default: the default provider. */
      provider?: string;
    }
  >;
  calls?: Record<string, { type: 'local.run' | 'docker.getRegistryImage'; args: object; provider?: string }>;
}

export interface Message {
  resource: string;
  text: string;
  ephemeral: boolean;
}

export interface Outcome {
  failed: boolean;
  /** What a person sees. */
  text: string;
  /** By resource: what was done to it; `same` when nothing. */
  operations: Record<string, string>;
  /** By resource: the inputs that differ. */
  differences: Record<string, string[]>;
  messages: Message[];
}

interface EngineEvent {
  diagnosticEvent?: { urn?: string; message: string; severity: string; ephemeral?: boolean };
  resourcePreEvent?: { metadata: { op: string; urn: string; detailedDiff?: Record<string, unknown> } };
}
interface Deployment {
  checkpoint: {
    latest?: { resources?: { urn: string; inputs?: object; outputs?: Record<string, unknown> }[] };
  };
}

/** A Pulumi project of one stack in a folder of its own, removed by `remove`. */
export function createProject(toolchain: Toolchain) {
  const folder = mkdtempSync(path.join(tmpdir(), 'conformance-'));
  const program = path.join(folder, 'program');
  cpSync(path.join(import.meta.dirname, 'program'), program, { recursive: true });
  symlinkSync(path.join(import.meta.dirname, '..', '..', 'node_modules'), path.join(program, 'node_modules'));
  const state = path.join(folder, '.pulumi', 'stacks', 'conformance', 'case.json');
  const env = { ...toolchain.env, PULUMI_BACKEND_URL: `file://${folder}`, PULUMI_CONFIG_PASSPHRASE: '' };
  let runs = 0;

  const pulumi = async (...words: string[]): Promise<Outcome> => {
    runs += 1;
    const log = path.join(folder, `events-${runs}.json`);
    const run = await execa(
      toolchain.pulumi,
      [...words, '--stack=case', '--non-interactive', '--color=never', `--event-log=${log}`],
      { cwd: program, env: { ...env, PULUMI_DEBUG_COMMANDS: 'true' }, all: true, reject: false },
    );
    return { failed: run.failed, text: run.all, ...eventsOf(log) };
  };
  const want = (wanted: Wanted) =>
    writeFileSync(path.join(program, 'resources.json'), JSON.stringify(wanted));

  return {
    folder,
    /** The folder with the program and `Pulumi.yaml`. */
    program,
    /** Runs `pulumi` with nothing added but where the state is. */
    plain: (words: string[], workingFolder = program) =>
      execa(toolchain.pulumi, words, { cwd: workingFolder, env, all: true, reject: false }),
    async init(): Promise<void> {
      await execa(toolchain.pulumi, ['stack', 'init', 'case'], { cwd: program, env });
    },
    preview(wanted: Wanted, ...words: string[]): Promise<Outcome> {
      want(wanted);
      return pulumi('preview', ...words);
    },
    up(wanted: Wanted, ...words: string[]): Promise<Outcome> {
      want(wanted);
      return pulumi('up', '--yes', '--skip-preview', ...words);
    },
    refresh: (): Promise<Outcome> => pulumi('refresh', '--yes', '--skip-preview'),
    destroy: (): Promise<Outcome> => pulumi('destroy', '--yes', '--skip-preview'),
    /** The outputs that the state keeps of a resource, undefined when it keeps none. */
    outputsOf(name: string): Record<string, unknown> | undefined {
      const deployment = JSON.parse(readFileSync(state, 'utf8')) as Deployment;
      return deployment.checkpoint.latest?.resources?.find((resource) => nameOf(resource.urn) === name)
        ?.outputs;
    },
    remove(): void {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function eventsOf(log: string): Omit<Outcome, 'failed' | 'text'> {
  const lines = readFileSync(log, 'utf8').trim().split('\n');
  const outcome: Omit<Outcome, 'failed' | 'text'> = { operations: {}, differences: {}, messages: [] };
  for (const line of lines) {
    const { diagnosticEvent, resourcePreEvent } = JSON.parse(line) as EngineEvent;
    // A log of events holds the SDK's own tracing as well, which nobody sees.
    if (diagnosticEvent && diagnosticEvent.severity !== 'debug') {
      const { urn = '', message, ephemeral = false } = diagnosticEvent;
      outcome.messages.push({ resource: nameOf(urn), text: message.trimEnd(), ephemeral });
    }
    if (resourcePreEvent) {
      const { op, urn, detailedDiff } = resourcePreEvent.metadata;
      // A replacement comes as several events, of which the first says that it is one.
      outcome.operations[nameOf(urn)] ??= op;
      outcome.differences[nameOf(urn)] ??= Object.keys(detailedDiff ?? {});
    }
  }
  return outcome;
}

function nameOf(urn: string): string {
  return urn.split('::').at(-1) ?? '';
}
