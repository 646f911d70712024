import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { describeParser, parseArguments } from '../../agent/vllm-parser.ts';
import { planRelease } from '../../shape/plan.ts';
import { readTemplates } from '../../templates/templates.ts';
import { suppliedHost, suppliedShape } from '../fixtures/operator-files.ts';
import { runPython, SERVER, temporaryFolder } from './engine.ts';

/** The engine's packages with other files; null takes one away. */
function packagesWith(files: Readonly<Record<string, string | null>>): string {
  const folder = temporaryFolder();
  cpSync(SERVER, folder, { recursive: true, filter: (source) => !source.includes('__pycache__') });
  for (const [path, content] of Object.entries(files)) {
    if (content === null) rmSync(join(folder, path), { recursive: true });
    else writeFileSync(join(folder, path), content);
  }
  return folder;
}

interface Described {
  readonly version: string;
  readonly flags: Readonly<Record<string, { takes: string; aliases?: string[]; choices?: string[] }>>;
  readonly toolParsers: readonly string[];
  readonly reasoningParsers: readonly string[];
}

function described(packages = SERVER): Described {
  const { exitCode, stdout, stderr } = runPython(describeParser, [], packages);
  if (exitCode !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

function argumentsOf(stack: string, engine: object = {}): readonly string[] {
  const shape = suppliedShape(stack);
  const changed = { ...shape, engine: { ...shape.engine, ...engine } } as typeof shape;
  const input = { stack, templates: readTemplates(), patches: new Map<string, string>() };
  return planRelease({ host: suppliedHost(), shape: changed, ...input }).arguments;
}

describe('an image that is asked what it takes', () => {
  it('tells each flag with its other names and what follows it', () => {
    const { flags } = described();
    expect(flags['--enable-expert-offload']).toEqual({
      takes: 'nothing',
      aliases: ['--no-enable-expert-offload'],
    });
    expect(flags['--tensor-parallel-size']).toEqual({ takes: 'value', aliases: ['-tp'] });
    expect(flags['--served-model-name']).toEqual({ takes: 'list' });
    expect(flags['--speculative-config']).toEqual({ takes: 'json', aliases: ['-sc'] });
    expect(flags['--kv-cache-dtype']?.choices).toContain('fp8_e4m3');
    expect(flags['--max-model-len']).toEqual({ takes: 'value' });
    expect(flags).not.toHaveProperty('model_tag');
  });

  it('tells its parsers and its version', () => {
    const { toolParsers, reasoningParsers, version } = described();
    expect(toolParsers).toContain('qwen3_coder');
    expect(reasoningParsers).toContain('glm47');
    expect(reasoningParsers).not.toContain('hermes');
    expect(version).toBe('0.0.0+lab');
  });

  it('is understood where its modules have the names of earlier releases', () => {
    const managers = { 'vllm/tool_parsers': null, 'vllm/utils/argparse_utils.py': null };
    const moved = packagesWith({
      ...managers,
      'vllm/utils/__init__.py': `import argparse\nhuman_readable_int = int\nclass FlexibleArgumentParser(argparse.ArgumentParser):\n    pass\n`,
      'vllm/entrypoints/openai/cli_args.py': `def make_arg_parser(parser):\n    parser.add_argument("--old")\n    return parser\n`,
      'vllm/entrypoints/openai/tool_parsers.py': `class ToolParserManager:\n    tool_parsers = {"hermes": object}\n`,
      'vllm/reasoning/__init__.py': `class ReasoningParserManager:\n    reasoning_parsers = {"qwen3": object}\n`,
    });
    const { flags, toolParsers, reasoningParsers } = described(moved);
    expect(Object.keys(flags)).toEqual(['--help', '--old']);
    expect([toolParsers, reasoningParsers]).toEqual([['hermes'], ['qwen3']]);
  });

  it('answers in one document whatever its modules print', () => {
    const chatty = packagesWith({
      'vllm/__init__.py': `import os\n__version__ = "1"\nprint("INFO: no GPU")\nos.system("echo below")\n`,
    });
    expect(described(chatty).version).toBe('1');
  });

  it.each([
    ['no parser', 'vllm/entrypoints/openai/cli_args.py', 'no make_arg_parser'],
    ['no registry of tool parsers', 'vllm/tool_parsers', "No module named 'vllm.tool_parsers'"],
    ['no registry of reasoning parsers', 'vllm/reasoning', "No module named 'vllm.reasoning'"],
    ['no vLLM', 'vllm', "No module named 'vllm'"],
  ])('says so and answers nothing where it has %s', (_what, path, reason) => {
    const { exitCode, stdout, stderr } = runPython(describeParser, [], packagesWith({ [path]: null }));
    expect(exitCode).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toContain(reason);
  });
});

describe('an image that is given arguments to parse', () => {
  it.each([
    ['the GLM shape', argumentsOf('glm-w4a16')],
    ['the Qwen shape', argumentsOf('qwen-fp8-mtp4')],
    [
      'every key of the configuration',
      argumentsOf('glm-w4a16', {
        telemetry: {
          tracesEndpoint: 'grpc://h:4317',
          detailedTraces: ['model', 'worker'],
          statistics: false,
        },
        shutdownTimeout: { seconds: 30 },
        chatTemplate: '/model/template.jinja',
        kvCacheMemory: { bytes: 2 ** 31 },
        speculative: { method: 'dflash', model: '/draft', num_speculative_tokens: 8 },
      }),
    ],
  ])('takes those of %s', (_what, args) => {
    expect(runPython(parseArguments, args)).toMatchObject({ exitCode: 0 });
  });

  it.each([
    ['an unknown flag', ['/model', '--nope'], 'unrecognized arguments: --nope'],
    ['an abbreviated flag', ['/model', '--gpu-memory-util', '0.9'], 'unrecognized arguments'],
    ['a flag that is gone', ['/model', '--disable-log-requests'], 'unrecognized arguments'],
    ['no JSON', ['/model', '--speculative-config', '{method: mtp}'], 'argument --speculative-config'],
    [
      'a tool parser it lacks',
      ['/model', '--tool-call-parser', 'glm99'],
      "--tool-call-parser: invalid choice: 'glm99'",
    ],
    [
      'a reasoning parser it lacks',
      ['/model', '--reasoning-parser', 'hermes'],
      '--reasoning-parser: invalid choice',
    ],
  ])('refuses %s with the status of a parser', (_what, args, message) => {
    const { exitCode, stderr } = runPython(parseArguments, args);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(message);
  });

  it('leaves a parser to the plug-in that brings it', () => {
    const args = ['/model', '--tool-call-parser', 'mine', '--tool-parser-plugin', '/model/mine.py'];
    expect(runPython(parseArguments, args).exitCode).toBe(0);
  });

  it('ends with another status where it cannot parse at all', () => {
    const without = packagesWith({ 'vllm/entrypoints/openai/cli_args.py': null });
    expect(runPython(parseArguments, ['/model'], without).exitCode).toBe(1);
  });

  it('leaves parsers alone where it has no registry of them', () => {
    const without = packagesWith({
      'vllm/tool_parsers': null,
      'vllm/entrypoints/openai/cli_args.py':
        'def make_arg_parser(parser):\n    parser.add_argument("--tool-call-parser")\n    return parser\n',
    });
    expect(runPython(parseArguments, ['--tool-call-parser', 'any'], without)).toMatchObject({ exitCode: 0 });
  });
});
