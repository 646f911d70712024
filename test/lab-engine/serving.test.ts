import { deflateSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  endEngines,
  ggufPayload,
  payload,
  type RunningEngine,
  startEngine,
  temporaryFolder,
} from './engine.ts';

const WEATHER = {
  type: 'function',
  function: {
    name: 'get_weather',
    parameters: { type: 'object', properties: { location: { type: 'string' } } },
  },
};

let vllm: RunningEngine;
let bare: RunningEngine;
let r9v: RunningEngine;
let traces: string;

beforeAll(async () => {
  traces = temporaryFolder();
  const engines = [
    startEngine({
      args: [
        payload({ model_type: 'qwen3_next' }),
        ...['--served-model-name', 'qwen', 'frank', '--max-model-len', '8192', '--max-num-seqs', '1'],
        ...['--enable-expert-offload', '--speculative-config', '{"method":"mtp","num_speculative_tokens":4}'],
        ...['--enable-auto-tool-choice', '--tool-call-parser', 'qwen3_coder', '--reasoning-parser', 'qwen3'],
      ],
      env: { VLLM_TORCH_PROFILER_DIR: traces, VLLM_TORCH_PROFILER_WITH_STACK: '0' },
    }),
    startEngine({
      args: [payload(), '--served-model-name', 'bare', '--api-key', 'secret', '--language-model-only'],
    }),
    startEngine({
      engine: 'r9v',
      args: ['--model', ggufPayload(), '--alias', 'qwen,frank', '--ctx-size', '4096', '--metrics'],
    }),
  ] as const;
  [vllm, bare, r9v] = await Promise.all(engines);
  await Promise.all([vllm, bare, r9v].map((engine) => engine.untilReady()));
});
afterAll(endEngines);

/** A square of one colour; the second half of its rows uses a filter, as real encoders do. */
function png(colour: readonly [number, number, number], size = 64): string {
  const chunk = (kind: string, body: Buffer): Buffer => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(body.length);
    return Buffer.concat([length, Buffer.from(kind), body, Buffer.alloc(4)]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const plain = Buffer.from([0, ...Array(size).fill(colour).flat()]);
  const sameAsAbove = Buffer.from([2, ...Array(3 * size).fill(0)]);
  const rows = Array.from({ length: size }, (_, row) => (row < size / 2 ? plain : sameAsAbove));
  const signature = Buffer.from('89504e470d0a1a0a', 'hex');
  const image = Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.concat(rows))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
  return `data:image/png;base64,${image.toString('base64')}`;
}

function picture(url: string): object[] {
  return [
    { type: 'text', text: 'What colour is this?' },
    { type: 'image_url', image_url: { url } },
  ];
}

interface StreamEvent {
  readonly choices: readonly { readonly delta?: Readonly<Record<string, string>> }[];
}

/** The events of a streamed answer, without the last `[DONE]`. */
async function events(engine: RunningEngine, path: string, body: object): Promise<StreamEvent[]> {
  const { text } = await engine.post(path, { ...body, stream: true });
  const lines = text.split('\n\n').filter(Boolean);
  expect(lines.pop()).toBe('data: [DONE]');
  return lines.map((line) => JSON.parse(line.slice('data: '.length)));
}

describe('vllm', () => {
  test('lists each served name with its length and its payload', async () => {
    const { json } = await vllm.get('/v1/models');
    const root = expect.stringMatching(/lab-engine-.*folder-/);
    expect(json).toMatchObject({
      data: [
        { id: 'qwen', max_model_len: 8192, root },
        { id: 'frank', max_model_len: 8192, root },
      ],
    });
  });

  test.each([
    ['What is 2+2?', '2 + 2 = 4'],
    ['What is 17 * 3?', '17 * 3 = 51'],
    ['Repeat exactly: blue whale 42', 'blue whale 42'],
    ['What is the capital of France?', 'Paris'],
  ])('answers %j with %j, its thinking in a field of its own', async (question, expected) => {
    const { message, finish_reason } = await vllm.ask(question, { model: 'frank' });
    expect(message.content).toBe(expected);
    expect(message.reasoning).toBeTruthy();
    expect(finish_reason).toBe('stop');
  });

  test('says in a stream what it says at once', async () => {
    const body = { messages: [{ role: 'user', content: 'Tell me about the harbour' }] };
    const whole = await vllm.ask('Tell me about the harbour');
    const streamed = await events(vllm, '/v1/chat/completions', {
      ...body,
      stream_options: { include_usage: true },
    });
    const deltas = streamed.flatMap((event) => event.choices);
    expect(deltas.map((choice) => choice.delta?.content ?? '').join('')).toBe(whole.message.content);
    expect(deltas.map((choice) => choice.delta?.reasoning ?? '').join('')).toBe(whole.message.reasoning);
    expect(deltas.at(-1)).toMatchObject({ finish_reason: 'stop' });
    expect(streamed.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: expect.any(Number) } });
  });

  test('spends the first tokens on thinking: a short limit leaves no content', async () => {
    const { message, finish_reason } = await vllm.ask('What is 2+2?', { max_tokens: 5 });
    expect(message.content).toBeNull();
    expect(message.reasoning).toBeTruthy();
    expect(finish_reason).toBe('length');
  });

  test('does not think when the request forbids it', async () => {
    const { message } = await vllm.ask('What is 2+2?', { chat_template_kwargs: { enable_thinking: false } });
    expect(message).toMatchObject({ content: '2 + 2 = 4', reasoning: null });
  });

  test('completes a bare prompt, whole and streamed', async () => {
    const { json } = await vllm.post('/v1/completions', { prompt: '2+2', max_tokens: 8 });
    expect(json).toMatchObject({ choices: [{ text: ' 2 + 2 = 4', finish_reason: 'stop' }] });
    const streamed = await events(vllm, '/v1/completions', { prompt: '2+2', max_tokens: 2 });
    expect(streamed.at(-1)).toMatchObject({ choices: [{ text: '', finish_reason: 'length' }] });
  });

  test('goes on to the limit when told to ignore the end', async () => {
    const { json } = await vllm.post('/v1/completions', { prompt: '2+2', max_tokens: 100, ignore_eos: true });
    expect(json).toMatchObject({ usage: { completion_tokens: 100 } });
  });

  test('calls the tool with the place that was asked for', async () => {
    const { message, finish_reason } = await vllm.ask('How is the weather in Oslo?', { tools: [WEATHER] });
    expect(finish_reason).toBe('tool_calls');
    expect(message.tool_calls[0]?.function.name).toBe('get_weather');
    expect(JSON.parse(message.tool_calls[0]?.function.arguments ?? '')).toEqual({ location: 'Oslo' });
  });

  test('calls no tool when told not to, or when it knows the answer', async () => {
    expect(
      (await vllm.ask('Weather in Oslo?', { tools: [WEATHER], tool_choice: 'none' })).finish_reason,
    ).toBe('stop');
    expect((await vllm.ask('What is 2+2?', { tools: [WEATHER] })).finish_reason).toBe('stop');
  });

  test.each([
    ['red', [255, 0, 0]],
    ['blue', [20, 20, 230]],
    ['green', [10, 170, 20]],
  ] as const)('sees that a picture is %s', async (name, colour) => {
    expect((await vllm.ask(picture(png(colour)))).message.content).toContain(name);
  });

  test.each([
    [
      'a picture that is none',
      { messages: [{ role: 'user', content: picture('data:image/png;base64,AAAA') }] },
      400,
    ],
    ['a name that it does not serve', { model: 'gpt', messages: [{ role: 'user', content: 'x' }] }, 404],
    ['no messages', {}, 400],
    ['more tokens than fit', { messages: [{ role: 'user', content: 'x' }], max_tokens: 8192 }, 400],
  ])('refuses %s', async (_, body, status) => {
    const answer = await vllm.post('/v1/chat/completions', body);
    expect(answer.status).toBe(status);
    expect(answer.json).toMatchObject({ error: { code: status, message: expect.any(String) } });
  });

  test('counts tokens, and drafts where it drafts', async () => {
    const count = async (name: string): Promise<number> =>
      Number(
        new RegExp(`^vllm:${name}{[^}]*model_name="qwen"[^}]*} (\\S+)$`, 'm').exec(
          (await vllm.get('/metrics')).text,
        )?.[1],
      );
    const before = await count('generation_tokens_total');
    await vllm.post('/v1/completions', { prompt: 'x', max_tokens: 12, ignore_eos: true });
    expect((await count('generation_tokens_total')) - before).toBe(12);
    expect(await count('num_requests_running')).toBe(0);
    expect(await count('spec_decode_num_accepted_tokens_total')).toBeGreaterThan(0);
    expect((await bare.get('/metrics')).text).not.toContain('spec_decode');
  });

  test('logs expert and draft lines where it offloads and drafts, and only there', async () => {
    await vllm.ask('What is 2+2?');
    await vllm.untilLog(/\[expert_lru\.py:212\].*hit rate/);
    await vllm.untilLog(/Mean acceptance length: \d/);
    await bare.post('/v1/completions', { prompt: 'x' }, { Authorization: 'Bearer secret' });
    expect(bare.log).not.toMatch(/expert_lru|acceptance/);
  });

  test('profiles only where a folder for traces is set', async () => {
    expect((await vllm.post('/start_profile', {})).status).toBe(200);
    expect((await vllm.post('/stop_profile', {})).status).toBe(200);
    expect((await bare.post('/start_profile', {})).status).toBe(404);
  });

  test('ignores SIGTERM and goes on answering', async () => {
    vllm.process.kill('SIGTERM');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(await vllm.status('/health')).toBe(200);
    expect(vllm.process.exitCode).toBeNull();
  });
});

describe('vllm without parsers', () => {
  const key = { Authorization: 'Bearer secret' };
  const messages = [{ role: 'user', content: 'How is the weather in Oslo?' }];

  test('refuses tools with the message that agents break on', async () => {
    const { status, json } = await bare.post('/v1/chat/completions', { messages, tools: [WEATHER] }, key);
    expect(status).toBe(400);
    expect(json).toMatchObject({
      error: {
        message: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
      },
    });
  });

  test('leaks its thinking into the content', async () => {
    const { json } = await bare.post('/v1/chat/completions', { messages }, key);
    expect(json).toMatchObject({
      choices: [{ message: { content: expect.stringContaining('</think>'), reasoning: null } }],
    });
  });

  test('wants its key for /v1 and nothing else', async () => {
    expect(await bare.status('/v1/models')).toBe(401);
    expect((await bare.post('/v1/completions', { prompt: 'x' }, { Authorization: 'Bearer no' })).status).toBe(
      401,
    );
    expect(await bare.status('/health')).toBe(200);
  });

  test('refuses pictures as a model for language only', async () => {
    const body = { messages: [{ role: 'user', content: picture(png([255, 0, 0])) }] };
    expect((await bare.post('/v1/chat/completions', body, key)).status).toBe(400);
  });
});

describe('r9v', () => {
  test('lists its aliases with the size of the context', async () => {
    expect((await r9v.get('/v1/models')).json).toMatchObject({
      data: [
        { id: 'qwen', meta: { n_ctx: 4096 } },
        { id: 'frank', meta: { n_ctx: 4096 } },
      ],
    });
  });

  test('keeps its thinking in reasoning_content and answers to any name', async () => {
    const { message } = await r9v.ask('What is 2+2?', { model: 'whatever' });
    expect(message.content).toBe('2 + 2 = 4');
    expect(message.reasoning_content).toBeTruthy();
    expect(message).not.toHaveProperty('reasoning');
  });

  test('calls tools without being told how', async () => {
    expect((await r9v.ask('Weather in Oslo?', { tools: [WEATHER] })).finish_reason).toBe('tool_calls');
  });

  test('names its metrics as llama.cpp does', async () => {
    await r9v.ask('What is 2+2?');
    expect((await r9v.get('/metrics')).text).toMatch(/^llamacpp:requests_processing 0$/m);
  });

  test('has no eyes without a projector', async () => {
    const body = { messages: [{ role: 'user', content: picture(png([255, 0, 0])) }] };
    expect((await r9v.post('/v1/chat/completions', body)).status).toBe(500);
  });
});
