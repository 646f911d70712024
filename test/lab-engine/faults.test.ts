import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { endEnginesAfterEach, payload, type RunningEngine, runEngine, startEngine } from './engine.ts';

endEnginesAfterEach();

const TOOLS = [
  { type: 'function', function: { name: 'get_weather', parameters: { properties: { location: {} } } } },
];

function start(fault: string): Promise<RunningEngine> {
  return startEngine({
    args: [
      payload({ model_type: 'qwen3_next' }),
      ...['--served-model-name', 'qwen', 'frank'],
      ...['--max-model-len', '8192', '--reasoning-parser', 'qwen3'],
      ...['--enable-auto-tool-choice', '--tool-call-parser', 'qwen3_coder'],
    ],
    env: { LAB_ENGINE_FAULT: fault },
  });
}

async function ready(fault: string): Promise<RunningEngine> {
  return (await start(fault)).untilReady();
}

function names(answer: { readonly json: unknown }): string[] {
  return (answer.json as { data: { id: string }[] }).data.map((model) => model.id);
}

describe('told to fail while loading', () => {
  test.each([
    ['exit-at-load', 'Engine core initialization failed'],
    ['expert-plan-error', 'ExpertPlanError: host holds 5113 of 12096 swappable experts'],
    ['kv-cache-error', '2.07 GiB KV cache is needed'],
  ])('%s ends it with status 1 after a part of the load', async (fault, message) => {
    const { code, log } = await runEngine({
      args: [payload()],
      env: { LAB_ENGINE_FAULT: fault, LAB_ENGINE_LOAD_SECONDS: '0.1' },
    });
    expect(log).toContain('Traceback');
    expect(log).toContain(message);
    expect(code).toBe(1);
  });

  test('never-ready: it loads and never answers', async () => {
    const engine = await start('never-ready');
    await engine.untilLog(/100% Completed/);
    await setTimeout(100);
    expect(await engine.status('/health')).toBe('refused');
    expect(engine.process.exitCode).toBeNull();
  });

  test('slow-start: it takes longer by so much', async () => {
    const before = Date.now();
    await ready('slow-start:0.4');
    expect(Date.now() - before).toBeGreaterThanOrEqual(400);
  });
});

describe('told to serve something else', () => {
  test('wrong-name: neither name is listed nor answered', async () => {
    const engine = await ready('wrong-name');
    expect(names(await engine.get('/v1/models'))).toEqual(['wrong-qwen', 'wrong-frank']);
    const asked = await engine.post('/v1/chat/completions', {
      model: 'qwen',
      messages: [{ role: 'user', content: 'x' }],
    });
    expect(asked.status).toBe(404);
  });

  test('first-name-only: the public name is missing', async () => {
    expect(names(await (await ready('first-name-only')).get('/v1/models'))).toEqual(['qwen']);
  });

  test('wrong-max-length: half of it', async () => {
    expect((await (await ready('wrong-max-length')).get('/v1/models')).text).toContain(
      '"max_model_len": 4096',
    );
  });
});

describe('told to answer badly', () => {
  test('empty-completions: nothing in the answer', async () => {
    const { message } = await (await ready('empty-completions')).ask('What is 2+2?');
    expect(message.content).toBe('');
    expect(message.reasoning).toBeNull();
  });

  test('garbage: one character again and again', async () => {
    expect((await (await ready('garbage')).ask('What is 2+2?')).message.content).toMatch(/^!+$/);
  });

  test('hang-after-headers: the status comes, the body does not', async () => {
    const engine = await ready('hang-after-headers');
    const asked = await fetch(`${engine.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ messages: [{ role: 'user', content: 'x' }] }),
      signal: AbortSignal.timeout(300),
    });
    expect(asked.status).toBe(200);
    await expect(asked.text()).rejects.toThrow(/timeout/);
    expect(await engine.status('/health')).toBe(200);
  });

  test('hang-on-second: the first answer comes, the second does not', async () => {
    const engine = await ready('hang-on-second');
    expect((await engine.ask('What is 2+2?')).message.content).toContain('4');
    const again = fetch(`${engine.url}/v1/completions`, {
      method: 'POST',
      body: JSON.stringify({ prompt: 'x' }),
      signal: AbortSignal.timeout(300),
    }).then((response) => response.text());
    await expect(again).rejects.toThrow(/timeout/);
  });

  test('leak-reasoning: the thinking is in the content in spite of a parser', async () => {
    const { message } = await (await ready('leak-reasoning')).ask('What is 2+2?');
    expect(message.reasoning).toBeNull();
    expect(message.content).toContain('</think>');
  });

  test('no-tools: the call comes as text', async () => {
    const choice = await (await ready('no-tools')).ask('Weather in Rome?', { tools: TOOLS });
    expect(choice.finish_reason).toBe('stop');
    expect(choice.message.tool_calls).toEqual([]);
    expect(choice.message.content).toContain('<tool_call>get_weather');
  });
});

describe('told to die after it began to serve', () => {
  test.each([
    ['crash-after', 1],
    ['exit-137-after', 137],
  ])('%s ends it with status %i', async (fault, status) => {
    const engine = await ready(`${fault}:0.3`);
    expect((await engine.ask('What is 2+2?')).message.content).toContain('4');
    expect(await engine.exitCode).toBe(status);
  });
});
