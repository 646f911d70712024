#!/usr/bin/env node
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { keepCompiledCode } from '../components/compile-cache.ts';
import { UsageError } from './usage.ts';

interface Command {
  /** After the command's words, e.g. `[<host>]`. */
  readonly operands: string;
  readonly summary: string;
  /** Number of operands that must and may be there. */
  readonly least: number;
  readonly most: number;
  readonly json?: boolean;
  readonly write?: boolean;
  /** Loads its code when it is called: `status` must not pay for what `plan` needs. */
  run(call: Call): Promise<number>;
}

interface Call {
  readonly folder: string;
  readonly operands: readonly string[];
  readonly json: boolean;
  readonly write: boolean;
}

const commands: Readonly<Record<string, Command>> = {
  status: {
    operands: '[<host>]',
    summary: 'who holds the slot of a host, whether it is healthy, what happened last',
    least: 0,
    most: 1,
    json: true,
    run: async ({ folder, operands, json }) =>
      (await import('./host-program.ts')).status(folder, operands[0], json),
  },
  plan: {
    operands: '[<stack> …]',
    summary: 'what shapes become, and what the rules say of them; asks no host; default: all',
    least: 0,
    most: Number.POSITIVE_INFINITY,
    run: async ({ folder, operands }) => (await import('./plan.ts')).plan(folder, operands),
  },
  preflight: {
    operands: '<stack>',
    summary: 'the deep checks of a shape on its host, while what serves goes on',
    least: 1,
    most: 1,
    run: async ({ folder, operands: [stack = ''] }) =>
      (await import('./preflight.ts')).preflight(folder, stack),
  },
  'payload seal': {
    operands: '<stack>',
    summary: "reads a shape's payload on its host and writes names, sizes and hashes to payloads/",
    least: 1,
    most: 1,
    run: async ({ folder, operands: [stack = ''] }) => (await import('./payload.ts')).seal(folder, stack),
  },
  'payload import': {
    operands: '<stack> <path>',
    summary: "the same with the hashes of a hub's records, which lie here: those files are not read",
    least: 2,
    most: 2,
    run: async ({ folder, operands: [stack = '', path = ''] }) =>
      (await import('./payload.ts')).importSeal(folder, stack, path),
  },
  'payload verify': {
    operands: '<stack>',
    summary:
      "compares a shape's payload on its host with payloads/; reads what changed since it was read last",
    least: 1,
    most: 1,
    run: async ({ folder, operands: [stack = ''] }) => (await import('./payload.ts')).verify(folder, stack),
  },
  'image learn': {
    operands: '<stack>',
    summary: "asks a shape's pinned image for its flags and parsers, on its host, and writes them to images/",
    least: 1,
    most: 1,
    run: async ({ folder, operands: [stack = ''] }) => (await import('./image.ts')).learn(folder, stack),
  },
  'patch check': {
    operands: '[<stack> …]',
    summary: 'whether the patches of shapes apply to the files of their pinned images; default: all shapes',
    least: 0,
    most: Number.POSITIVE_INFINITY,
    run: async ({ folder, operands }) => (await import('./patch/check.ts')).check(folder, operands),
  },
  'patch new': {
    operands: '<stack> <target> <name>',
    summary: "lays a copy of an image's file out for editing; again after the edit: writes the patch",
    least: 3,
    most: 3,
    run: async ({ folder, operands: [stack = '', target = '', name = ''] }) =>
      (await import('./patch/new.ts')).newPatch(folder, stack, target, name),
  },
  'patch rebase': {
    operands: '<stack> [<digest>]',
    summary: "tries a shape's patches on another image; --write writes those anew that stand elsewhere in it",
    least: 1,
    most: 2,
    write: true,
    run: async ({ folder, operands: [stack = '', digest], write }) =>
      (await import('./patch/rebase.ts')).rebase(folder, stack, { digest, write }),
  },
  'patch record': {
    operands: '<name> …',
    summary: 'accepts patches as they are now: records their hashes in patches/SHA256SUMS',
    least: 1,
    most: Number.POSITIVE_INFINITY,
    run: async ({ folder, operands }) => (await import('./patch/record.ts')).record(folder, operands),
  },
  rollback: {
    operands: '[<host>]',
    summary: 'back to the release that held the slot before, without its stack',
    least: 0,
    most: 1,
    run: async ({ folder, operands }) => (await import('./host-program.ts')).rollback(folder, operands[0]),
  },
  'release forgive': {
    operands: '<release> [<host>]',
    summary: 'lets a release that failed on a host be tried again',
    least: 1,
    most: 2,
    run: async ({ folder, operands: [release = '', host] }) =>
      (await import('./host-program.ts')).forgive(folder, release, host),
  },
};

async function main(words: readonly string[]): Promise<number> {
  const { values, positionals } = options(words);
  if (values.help || positionals.length === 0) {
    process.stdout.write(help());
    return 0;
  }
  const name = Object.keys(commands).find((known) =>
    known.split(' ').every((word, index) => word === positionals[index]),
  );
  const command = name === undefined ? undefined : commands[name];
  if (name === undefined || command === undefined) throw await unknownCommand(positionals);
  const operands = positionals.slice(name.split(' ').length);
  if (operands.length < command.least || operands.length > command.most) {
    throw new UsageError(`usage: slot ${name} ${command.operands}`);
  }
  if (values.json && !command.json) throw new UsageError(`slot ${name} has no --json`);
  if (values.write && !command.write) throw new UsageError(`slot ${name} has no --write`);
  const { folder = projectFolder, json = false, write = false } = values;
  return command.run({ folder, operands, json, write });
}

/** The command is part of its project: it works from everywhere. */
const projectFolder = fileURLToPath(new URL('..', import.meta.url));

function options(words: readonly string[]) {
  try {
    return parseArgs({
      args: [...words],
      allowPositionals: true,
      options: {
        json: { type: 'boolean' },
        write: { type: 'boolean' },
        folder: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message.split('. ')[0]);
  }
}

async function unknownCommand(words: readonly string[]): Promise<UsageError> {
  const [first = '', second] = words;
  const { distance } = await import('fastest-levenshtein');
  const farness = (name: string): number => {
    const [word = '', ...more] = name.split(' ');
    return (
      distance(first, word) + (more.length > 0 && second !== undefined ? distance(second, more.join(' ')) : 0)
    );
  };
  const all = Object.keys(commands);
  const group = all.filter((name) => name.startsWith(`${first} `));
  const [nearest] = (group.length > 0 ? group : all).sort((a, b) => farness(a) - farness(b));
  const others = group.length > 1 ? `there are ${group.join(', ')}` : 'slot --help lists all';
  return new UsageError(`unknown command "${words.join(' ')}": did you mean "${nearest}"? ${others}`);
}

function help(): string {
  const rows = Object.entries(commands).map(([name, { operands, json, write, summary }]) => [
    `  slot ${name} ${operands}${json ? ' [--json]' : ''}${write ? ' [--write]' : ''}`,
    summary,
  ]);
  const width = Math.max(...rows.map(([usage = '']) => usage.length)) + 2;
  return [
    'The slot of a GPU host: who serves in it, and what a shape would be there.',
    '',
    ...rows.map(([usage = '', summary]) => `${usage.padEnd(width)}${summary}`),
    '',
    '  <stack>, <host>  name as in Pulumi.<name>.yaml; the host may be left out where there is one host file',
    '  --folder <path>  where those files lie; default: the project of this command',
    '',
    'A change of the occupant is `pulumi up -s <stack>`.',
    '',
  ].join('\n');
}

keepCompiledCode();
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const { name, message, stack } = error as Error;
  const isExpected = error instanceof UsageError || name === 'ConfigurationError' || name === 'SshFailure';
  process.stderr.write(`${isExpected ? message : stack}\n`);
  process.exitCode = error instanceof UsageError ? 64 : 1;
}
