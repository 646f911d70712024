import type { ImageKnowledge } from '../../../../../shape/engines/image-knowledge.ts';
import type { Release } from '../../../../../shape/release.ts';
import { planned, type RuleCases } from '../rule-cases.ts';

/** All that an image tells of itself, as far as these shapes need it. */
const complete: ImageKnowledge = {
  digest: `sha256:da4029666${'0'.repeat(55)}`,
  engine: 'vllm',
  source: 'the image itself',
  taken: '2026-11-29',
  complete: true,
  flags: {
    '--host': { takes: 'value' },
    '--port': { takes: 'value' },
    '--served-model-name': { takes: 'list' },
    '--tensor-parallel-size': { takes: 'value', aliases: ['-tp'] },
    '--max-model-len': { takes: 'value' },
    '--max-num-seqs': { takes: 'value' },
    '--max-num-batched-tokens': { takes: 'value' },
    '--gpu-memory-utilization': { takes: 'value' },
    '--kv-cache-dtype': { takes: 'value', choices: ['auto', 'fp8'] },
    '--enable-expert-offload': { takes: 'nothing', aliases: ['--no-enable-expert-offload'] },
    '--expert-precise-memory': { takes: 'nothing', aliases: ['--no-expert-precise-memory'] },
    '--expert-gather-lanes': { takes: 'value' },
    '--enable-prefix-caching': { takes: 'nothing', aliases: ['--no-enable-prefix-caching'] },
    '--enable-auto-tool-choice': { takes: 'nothing', aliases: ['--no-enable-auto-tool-choice'] },
    '--tool-call-parser': { takes: 'value' },
    '--reasoning-parser': { takes: 'value' },
    '--compilation-config': { takes: 'json', aliases: ['-cc'] },
    '--seed': { takes: 'value' },
    '--swap-space': { takes: 'value' },
  },
  toolParsers: ['glm45', 'glm47'],
  reasoningParsers: ['glm45', 'glm47'],
};
const { '--swap-space': _swap, '--seed': _seed, ...someFlags } = complete.flags;
const partial: ImageKnowledge = {
  ...complete,
  complete: false,
  flags: someFlags,
  reasoningParsers: ['glm47'],
};

const vllm = (extraArguments: readonly string[], knowledge?: ImageKnowledge, engine: object = {}): Release =>
  planned('glm-w4a16', {
    shape: { engine: { extraArguments, ...engine } },
    ...(knowledge && { image: { name: 'an-image', knowledge } }),
  });
const withFlags = (what: string, flags: readonly string[], knowledge?: ImageKnowledge) => ({
  what: `${what}: ${flags.join(' ')}`,
  release: vllm(flags, knowledge),
});
const served = [
  ...['--model', '{payload}', '--alias', '{servedNames}'],
  ...['--host', '0.0.0.0', '--port', '{port}'],
];
const r9v = (what: string, ...flags: string[]) => ({
  what: `${what}: ${flags.join(' ')}`,
  release: planned('r9v-q8_0', {
    shape: { engine: { arguments: [...served, ...flags] } },
  }),
});

const r9vOn = (knowledge: ImageKnowledge, entrypoint?: readonly string[]): Release =>
  planned('r9v-q8_0', {
    shape: { engine: { arguments: served, ...(entrypoint && { entrypoint }) } },
    image: { name: 'an-image', knowledge },
  });
const beginning = (entrypoint: string[], found?: string) => ({
  what: `an image that begins with ${JSON.stringify(entrypoint)}`,
  release: vllm([], { ...complete, entrypoint }),
  ...(found !== undefined && { found }),
});
function withImageFacts(changes: object): Release {
  const release = vllm([], complete);
  const { review } = release;
  if (review?.image === undefined) throw new Error('the release carries nothing of its image');
  return { ...release, review: { ...review, image: { ...review.image, ...changes } } };
}

const unknownTo = { what: 'an image of which nothing is known', release: vllm([]) };
const knownWhole = { what: 'an image that told all of itself', release: vllm([], complete) };
const knownInPart = { what: 'an image of which some is on record', release: vllm([], partial) };

export const cases: RuleCases = {
  'image-known': {
    fires: [{ ...unknownTo, found: 'sha256:da4029666' }, r9v('an image of R9V')],
    silent: [knownWhole, knownInPart],
  },
  'image-engine': {
    fires: [
      {
        what: 'vLLM on an image of R9V',
        release: vllm([], { ...complete, engine: 'r9v' }),
        found: 'vllm on an image of r9v (images/an-image.yaml)',
      },
      { what: 'R9V on an image of vLLM', release: r9vOn(complete), found: 'r9v on an image of vllm' },
    ],
    silent: [
      knownWhole,
      unknownTo,
      { what: 'R9V on its image', release: r9vOn({ ...complete, engine: 'r9v' }) },
      { what: 'a release of before the kind was carried', release: withImageFacts({ engine: undefined }) },
    ],
  },
  'image-entrypoint': {
    fires: [
      beginning(['python3', '-m', 'vllm.entrypoints.openai.api_server'], 'api_server'),
      beginning([], 'nothing of its own'),
      beginning(['vllm']),
      beginning(['vllm', 'serve', '/m']),
      beginning(['vllm', 'bench']),
      beginning(['/bin/bash', '-c', 'vllm serve']),
      beginning(['vllm serve']),
      beginning(['serve', 'vllm']),
      {
        what: 'an R9V that is declared to begin otherwise',
        release: r9vOn({ ...complete, engine: 'r9v', entrypoint: ['/app/other'] }, ['/app/r9v']),
        found: '["/app/other"]',
      },
    ],
    silent: [
      knownWhole,
      unknownTo,
      beginning(['vllm', 'serve']),
      beginning(['/usr/local/bin/vllm', 'serve']),
      {
        what: 'an R9V that is declared to begin so',
        release: r9vOn({ ...complete, engine: 'r9v', entrypoint: ['/app/r9v'] }, ['/app/r9v']),
      },
      {
        what: 'an R9V of which nothing is declared',
        release: r9vOn({ ...complete, engine: 'r9v', entrypoint: ['/app/r9v'] }),
      },
    ],
  },
  'word-length': {
    fires: [
      {
        what: 'an argument of a byte too many',
        release: vllm(['--response-role', 'x'.repeat(131_072)]),
        found: 'has 131073 bytes, of 131072',
      },
      { what: 'letters of more bytes', release: vllm(['--response-role', 'ä'.repeat(70_000)]) },
      {
        what: 'a variable that is too long with its name',
        release: planned('glm-w4a16', { shape: { environment: { LONG: 'x'.repeat(131_067) } } }),
        found: 'variable LONG has 131073 bytes',
      },
      {
        what: 'a rendered field',
        release: vllm([], undefined, { speculative: { method: 'x'.repeat(131_072) } }),
      },
    ],
    silent: [
      unknownTo,
      { what: 'the longest argument', release: vllm(['--response-role', 'x'.repeat(131_071)]) },
      {
        what: 'the longest variable',
        release: planned('glm-w4a16', { shape: { environment: { LONG: 'x'.repeat(131_066) } } }),
      },
    ],
  },
  'prefill-in-one-step': {
    fires: [
      {
        ...withFlags('fewer batched tokens than the length', ['--no-enable-chunked-prefill']),
        found: '2048 batched tokens at a length of 131072',
      },
      withFlags('the same with underscores', ['--no_enable_chunked_prefill']),
      {
        what: 'one token too few',
        release: vllm(['--no-enable-chunked-prefill'], undefined, { maxBatchedTokens: 131_071 }),
      },
    ],
    silent: [
      unknownTo,
      withFlags('chunks that are asked for', ['--enable-chunked-prefill']),
      {
        what: 'as many batched tokens as the length',
        release: vllm(['--no-enable-chunked-prefill'], undefined, { maxBatchedTokens: 131_072 }),
      },
      {
        what: 'batched tokens that the engine chooses',
        release: vllm(['--no-enable-chunked-prefill'], undefined, { maxBatchedTokens: undefined }),
      },
      r9v('another engine', '--no-enable-chunked-prefill'),
    ],
  },
  'flags-known': {
    fires: [
      {
        ...withFlags('a flag it lacks', ['--dtype', 'auto'], complete),
        found: '--dtype is not known to the image',
      },
      { ...withFlags('a slip', ['--max-num-seq-s', '2'], complete), found: 'did you mean --max-num-seqs?' },
      withFlags('a short flag it lacks', ['-zz', '1'], complete),
      withFlags('a negation it lacks', ['--no-seed'], complete),
    ],
    silent: [
      knownWhole,
      unknownTo,
      withFlags('a flag that it has', ['--seed', '1'], complete),
      withFlags('underscores', ['--compilation_config', '{}'], complete),
      withFlags('one key of a map', ['--compilation-config.mode', '3'], complete),
      withFlags('a flag that the record does not name', ['--dtype', 'auto'], partial),
    ],
  },
  'flags-recorded': {
    fires: [
      { ...withFlags('a flag not on record', ['--seed', '1'], partial), found: 'does not name --seed' },
    ],
    silent: [knownInPart, knownWhole, unknownTo, withFlags('a flag it lacks', ['--dtype', 'auto'], complete)],
  },
  'flags-whole': {
    fires: [
      {
        ...withFlags('a flag cut short', ['--expert-gather', '4'], complete),
        found: '--expert-gather-lanes',
      },
      {
        ...withFlags('a flag of the record cut short', ['--expert-gat=4'], partial),
        found: '--expert-gather-lanes',
      },
    ],
    silent: [knownWhole, unknownTo, withFlags('a whole flag', ['--expert-gather-lanes', '4'], complete)],
  },
  'flags-current': {
    fires: [
      { ...withFlags('a flag of once', ['--disable-log-requests']), found: 'since 0.12' },
      { ...withFlags('a flag of once', ['--enable-reasoning'], partial), found: 'engine.reasoningParser' },
      { ...withFlags('a flag of once', ['--task=generate'], complete), found: '--runner' },
      withFlags('a flag of once, with underscores', ['--use_v2_block_manager']),
      withFlags('a flag of once, turned off', ['--no-disable-log-requests']),
      withFlags('a flag of once', ['--guided-decoding-backend', 'xgrammar']),
      withFlags('a flag of once', ['--num-scheduler-steps', '8']),
      withFlags('a flag of once', ['--swap-space', '4'], partial),
      { ...withFlags('a flag of once', ['--rope-scaling', '{}']), found: '--hf-overrides' },
      withFlags('a flag of once', ['--rope-theta', '1']),
      { ...withFlags('a flag of once', ['--device', 'cuda']), found: 'since 0.10' },
      { ...withFlags('a flag of once', ['--worker-use-ray']), found: '--distributed-executor-backend' },
      { ...withFlags('a flag of once', ['--scheduler-delay-factor', '0.5']), found: '#25334' },
      {
        ...withFlags('a flag of once, cut short', ['--disable-log-req']),
        found: '--disable-log-requests, cut short to --disable-log-req, is gone since 0.12',
      },
      withFlags('a flag of once, cut short and turned off', ['--no-worker-use']),
      { ...r9v('a flag of once', '--mmap'), found: 'b10884' },
      r9v('a flag of once', '--no-mmap'),
      r9v('a flag of once', '--draft-max', '16'),
      {
        ...r9v('a switch that became a value', '--flash-attn', '--ctx-size', '{maxModelLength}'),
        found: 'take the next flag',
      },
      r9v('the same by its short name', '-fa'),
    ],
    silent: [
      knownWhole,
      unknownTo,
      withFlags('the beginning of a flag of today', ['--enable-reas'], {
        ...complete,
        flags: { ...complete.flags, '--enable-reas': { takes: 'nothing' } },
      }),
      withFlags('a flag that nobody knows', ['--gather-lanes', '4']),
      withFlags('a flag of once that this image has', ['--swap-space', '4'], complete),
      withFlags('the flag of today', ['--structured-outputs-config', '{"backend": "xgrammar"}']),
      r9v('the value that is asked for', '--flash-attn', 'on', '--ctx-size', '{maxModelLength}'),
    ],
  },
  'flag-values': {
    fires: [
      {
        what: 'a type of the KV cache that the image does not have',
        release: vllm([], complete, { kvCacheDtype: 'int3' }),
        found: 'only auto, fp8',
      },
      withFlags('no value where one is needed', ['--expert-gather-lanes'], complete),
      withFlags('a flag in the place of its value', ['--expert-gather-lanes', '--seed', '1'], partial),
      {
        ...withFlags('a second value where one is taken', ['--expert-gather-lanes', '4', '/m'], complete),
        found: 'takes one value, and has 2: 4 /m',
      },
    ],
    silent: [
      knownWhole,
      { what: 'a type that the image has', release: vllm([], complete, { kvCacheDtype: 'fp8' }) },
      {
        what: 'any type, of an image of which nothing is known',
        release: vllm([], undefined, { kvCacheDtype: 'int3' }),
      },
      withFlags('a negative number', ['--expert-gather-lanes', '-1'], complete),
    ],
  },
  'parsers-known': {
    fires: [
      { what: 'a slip', release: vllm([], complete, { toolParser: 'qlm47' }), found: 'did you mean glm47?' },
      {
        what: 'a reasoning parser it lacks',
        release: vllm([], complete, { reasoningParser: 'deepseek_r1' }),
      },
    ],
    silent: [
      knownWhole,
      unknownTo,
      { what: 'a parser not on record', release: vllm([], partial, { toolParser: 'hermes' }) },
    ],
  },
  'parsers-recorded': {
    fires: [
      {
        what: 'a parser not on record',
        release: vllm([], partial, { toolParser: 'hermes' }),
        found: 'hermes',
      },
      { what: 'one of another kind', release: vllm([], partial, { reasoningParser: 'glm45' }) },
    ],
    silent: [
      knownInPart,
      unknownTo,
      { what: 'a parser it lacks', release: vllm([], complete, { toolParser: 'x' }) },
    ],
  },
};
