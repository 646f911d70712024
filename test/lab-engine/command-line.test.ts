import { describe, expect, test } from 'vitest';
import { endEnginesAfterEach, payload, python, runEngine, startEngine } from './engine.ts';

endEnginesAfterEach();

const GLM = [
  ['--tensor-parallel-size', '2'],
  ['--enable-expert-offload', '--expert-precise-memory'],
  ['--max-model-len', '131072'],
  ['--max-num-seqs', '2'],
  ['--gpu-memory-utilization', '0.98'],
  ['--max-num-batched-tokens', '2048'],
  ['--enable-prefix-caching', '--enable-auto-tool-choice'],
  ['--tool-call-parser', 'glm47', '--reasoning-parser', 'glm47'],
  ['--served-model-name', 'glm53-flash', 'frank'],
  ['--kv-cache-dtype', 'auto'],
].flat();
const EXPANDABLE = { PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True' };

describe('the vllm command line', () => {
  test('takes the recorded GLM arguments', async () => {
    const engine = await startEngine({ args: ['--model', payload(), ...GLM], env: EXPANDABLE });
    await engine.untilReady();
  });

  test('takes the model as a word of its own and underscores for dashes', async () => {
    const engine = await startEngine({ args: [payload(), '--max_model_len', '4k'] });
    await engine.untilReady();
    expect((await engine.get('/v1/models')).text).toContain('"max_model_len": 4000');
  });

  test.each([
    ['an unknown flag', ['--nope'], 'unrecognized arguments: --nope'],
    ['a flag that was removed', ['--disable-log-requests'], 'unrecognized arguments: --disable-log-requests'],
    ['an abbreviated flag', ['--gpu-memory-util', '0.9'], 'unrecognized arguments: --gpu-memory-util'],
    ['a flag and its value in one word', ['--dtype auto'], 'unrecognized arguments: --dtype auto'],
    ['a second serve', ['serve'], 'unrecognized arguments: serve'],
    ['a number that is none', ['--port', '8000O'], 'argument --port: invalid int value'],
    ['JSON that lost its quotes', ['--speculative-config', '{method:mtp}'], '--speculative-config'],
    ['JSON with quotes around it', ['--hf-overrides', `'{"a":1}'`], '--hf-overrides'],
    ['JSON that is no object', ['--compilation-config', '3'], 'not a JSON object'],
    ['a KV cache type that does not exist', ['--kv-cache-dtype', 'int3'], 'invalid choice'],
  ])('refuses %s with status 2', async (_, args, message) => {
    const { code, log } = await runEngine({ args: ['/model', ...args] });
    expect(log).toContain(message);
    expect(code).toBe(2);
  });

  test.each([
    ['tool choice without a parser', ['--enable-auto-tool-choice'], 'requires --tool-call-parser'],
    [
      'a tool parser that it does not have',
      ['--tool-call-parser', 'glm99'],
      'invalid tool call parser: glm99',
    ],
    ['a reasoning parser that it does not have', ['--reasoning-parser', 'x'], 'invalid reasoning parser: x'],
  ])('ends with status 1 at %s', async (_, args, message) => {
    const { code, log } = await runEngine({ args: ['/model', ...args] });
    expect(log).toContain(message);
    expect(code).toBe(1);
  });

  test('can be parsed without a GPU by the names that the original has', () => {
    const parse = (args: readonly string[]): string =>
      python(
        [
          'from vllm.entrypoints.openai.cli_args import make_arg_parser',
          'from vllm.utils.argparse_utils import FlexibleArgumentParser',
          `print(make_arg_parser(FlexibleArgumentParser()).parse_args(${JSON.stringify(args)}).speculative_config)`,
        ].join('\n'),
      );
    expect(parse(['--speculative-config', '{"method": "mtp", "num_speculative_tokens": 4}'])).toContain(
      "{'method': 'mtp', 'num_speculative_tokens': 4}",
    );
    expect(() => parse(['--speculative-config', '{method: mtp}'])).toThrow(
      /argument --speculative-config\/-sc/,
    );
  });

  test('lists its flags', async () => {
    const { code, log } = await runEngine({ args: ['--help'] });
    expect(log).toContain('--enable-expert-offload');
    expect(code).toBe(0);
  });
});

describe('the r9v command line', () => {
  test.each([
    ['an unknown option', ['--nope'], 'error: invalid argument: --nope'],
    [
      'an option that takes the next one as its value',
      ['--flash-attn', '--ctx-size'],
      `unknown value: '--ctx-size'`,
    ],
    ['no model', [], '--model is required'],
  ])('ends with status 1 at %s', async (_, args, message) => {
    const { code, log } = await runEngine({ engine: 'r9v', args });
    expect(log).toContain(message);
    expect(code).toBe(1);
  });
});

test('a setting of the double that makes no sense ends it with status 2', async () => {
  const { code, log } = await runEngine({ args: ['/model'], env: { LAB_ENGINE_FAULT: 'explode' } });
  expect(log).toContain("LAB_ENGINE_FAULT='explode' is not one of");
  expect(code).toBe(2);
});
