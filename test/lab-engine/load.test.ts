import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  endEnginesAfterEach,
  ggufPayload,
  payload,
  runEngine,
  SERVER,
  startEngine,
  temporaryFolder,
} from './engine.ts';

endEnginesAfterEach();

const OFFLOAD = ['--enable-expert-offload'];
const EXPANDABLE = { PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True' };

describe('while vllm loads', () => {
  test('connections are refused', async () => {
    const engine = await startEngine({ args: [payload()], env: { LAB_ENGINE_LOAD_SECONDS: '0.5' } });
    await engine.untilLog(/KV cache reserve/);
    expect(await engine.status('/health')).toBe('refused');
    await engine.untilReady();
  });

  test('health is 503 when told so', async () => {
    const engine = await startEngine({
      args: [payload()],
      env: { LAB_ENGINE_LOAD_SECONDS: '0.5', LAB_ENGINE_WHILE_LOADING: '503' },
    });
    await engine.untilLog(/KV cache reserve/);
    expect(await engine.status('/health')).toBe(503);
    await engine.untilReady();
  });

  test('it says how much memory it may lock', async () => {
    const engine = await (await startEngine({ args: [payload()] })).untilReady();
    expect(engine.log).toMatch(/Max locked memory: soft (\d+|unlimited), hard (\d+|unlimited)/);
  });
});

describe('vllm does not load', () => {
  test.each([
    ['a payload that is not there', '/nowhere', [], {}, 'Invalid repository ID or local directory'],
    ['GLM with an fp8 cache', payload(), ['--kv-cache-dtype', 'fp8'], {}, 'rocm_aiter_mla_decode_fwd'],
    ['offloaded GLM without expandable segments', payload(), OFFLOAD, {}, 'Tried to allocate 662.00 MiB'],
    [
      'offload of compressed-tensors',
      payload({ model_type: 'glm5_next', quantization_config: { quant_method: 'compressed-tensors' } }),
      OFFLOAD,
      EXPANDABLE,
      'no offload recipe',
    ],
  ])('%s', async (_, model, args, env, message) => {
    const { code, log } = await runEngine({ args: [model, ...args], env });
    expect(log).toContain(message);
    expect(code).toBe(1);
  });

  test('on a port that another one holds, and says so before it loads', async () => {
    const first = await (await startEngine({ args: [payload()] })).untilReady();
    const port = new URL(first.url).port;
    const { code, log } = await runEngine({
      args: [payload(), '--port', port],
      env: { LAB_ENGINE_LOAD_SECONDS: '60' },
      wrapper: ['sh', '-c', `exec "$@" --port ${port}`, 'sh'],
    });
    expect(log).toContain('Address already in use');
    expect(code).toBe(1);
  });

  test('when the memory that it pins is more than it may lock', async () => {
    const { code, log } = await runEngine({
      args: [payload()],
      env: { LAB_ENGINE_PIN_MIB: '64' },
      wrapper: ['setpriv', '--bounding-set=-ipc_lock', 'prlimit', '--memlock=65536:65536'],
    });
    expect(log).toContain('hipHostRegister of 64 MiB failed: cannot allocate memory');
    expect(code).toBe(1);
  });

  test('a patched module that cannot be imported', async () => {
    const packages = join(temporaryFolder(), 'packages');
    cpSync(SERVER, packages, { recursive: true });
    writeFileSync(join(packages, 'vllm/compilation/wrapper.py'), 'from vllm.compilation import missing\n');
    const { code, log } = await runEngine({ args: [payload()], packages });
    expect(log).toContain('ImportError');
    expect(code).toBe(1);
  });
});

test('memory that may be locked is locked', async () => {
  const engine = await startEngine({ args: [payload()], env: { LAB_ENGINE_PIN_MIB: '4' } });
  await engine.untilReady();
  expect(readFileSync(`/proc/${engine.process.pid}/status`, 'utf8')).toMatch(/VmLck:\s+4096 kB/);
});

test('a patched module shows its own marker and bytes, imported', async () => {
  const packages = join(temporaryFolder(), 'packages');
  cpSync(SERVER, packages, { recursive: true });
  const target = join(packages, 'vllm/v1/core/kv_cache_utils.py');
  writeFileSync(target, readFileSync(target, 'utf8').replace('MARKER = "image"', 'MARKER = "patched"'));
  const engine = await (await startEngine({ args: [payload()], packages })).untilReady();
  const modules = (await engine.get('/lab/modules')).json as Record<string, { file: string; marker: string }>;
  expect(modules['vllm.v1.core.kv_cache_utils']).toMatchObject({ file: target, marker: 'patched' });
  expect(modules['vllm.compilation.wrapper']).toMatchObject({ marker: 'image' });
});

test('a shard that the index names and the disk lacks makes it talk nonsense', async () => {
  const model = payload();
  const index = {
    weight_map: { a: 'model-00001-of-00002.safetensors', b: 'model-00002-of-00002.safetensors' },
  };
  writeFileSync(join(model, 'model.safetensors.index.json'), JSON.stringify(index));
  writeFileSync(join(model, 'model-00001-of-00002.safetensors'), '');
  const engine = await (await startEngine({ args: [model, '--reasoning-parser', 'glm47'] })).untilReady();
  expect((await engine.ask('What is 2+2?')).message.content).toMatch(/^!+$/);
});

describe('r9v', () => {
  test('answers 503 while it loads', async () => {
    const engine = await startEngine({
      engine: 'r9v',
      args: ['--model', ggufPayload()],
      env: { LAB_ENGINE_LOAD_SECONDS: '0.5' },
    });
    await engine.untilLog(/Max locked memory/);
    const loading = await engine.get('/health');
    expect(loading.status).toBe(503);
    expect(loading.json).toMatchObject({ error: { message: 'Loading model' } });
    await engine.untilReady();
  });

  test('writes into its state directory at every start', async () => {
    const state = temporaryFolder();
    for (const starts of [1, 2]) {
      const engine = await startEngine({ engine: 'r9v', args: ['-m', ggufPayload(), '--state-dir', state] });
      await engine.untilReady();
      engine.process.kill('SIGKILL');
      expect(readFileSync(join(state, 'starts.log'), 'utf8').trim().split('\n')).toHaveLength(starts);
    }
  });

  test.each([
    [
      'a state directory that is not there',
      ggufPayload(),
      ['--state-dir', '/nowhere'],
      'state directory /nowhere',
    ],
    ['a missing part', ggufPayload([1]), [], 'x-00002-of-00002.gguf'],
    [
      'another part than the first',
      ggufPayload().replace('00001-of', '00002-of'),
      [],
      'illegal split file idx: 1',
    ],
  ])('does not load with %s', async (_, model, args, message) => {
    const { code, log } = await runEngine({ engine: 'r9v', args: ['-m', model, ...args] });
    expect(log).toContain(message);
    expect(code).toBe(1);
  });

  test('does not load what is no GGUF', async () => {
    const model = join(dirname(ggufPayload()), 'other.gguf');
    writeFileSync(model, 'PK..');
    expect(existsSync(model)).toBe(true);
    const { code, log } = await runEngine({ engine: 'r9v', args: ['-m', model] });
    rmSync(model);
    expect(log).toContain('invalid magic characters');
    expect(code).toBe(1);
  });
});
