import { beforeEach, describe, expect, it } from 'vitest';
import { inspect } from '../../../agent/inspect.ts';
import { Store } from '../../../agent/store.ts';
import { inspectionSchema } from '../../../shape/inspection.ts';
import { measuredOf } from '../../../shape/measured.ts';
import { type Release, releaseIdOf } from '../../../shape/release.ts';
import { planned } from '../shape/rules/rule-cases.ts';
import { SimulatedHost } from './simulated-host.ts';

const glm = planned('glm-w4a16');
const r9v = planned('r9v-q8_0');
const gib = 2 ** 30;

let host: SimulatedHost;

beforeEach(() => {
  host = new SimulatedHost(glm.service, [glm, r9v]);
});

async function inspected(wanted: Release | undefined = glm) {
  const answer = await inspect(host, new Store(host, glm.service), glm.service, 'test', wanted);
  return inspectionSchema.parse(JSON.parse(JSON.stringify(answer)));
}

function payloadFile(name: string, content: string): void {
  host.files.set(`${glm.payload.folder}/${name}`, content);
}

describe('an inspection', () => {
  it('says what the payload says of itself', async () => {
    payloadFile(
      'config.json',
      '{"n_routed_experts":288,"quantization_config":{"quant_method":"auto-round"}}',
    );
    const { payload } = await inspected();
    expect(payload).toMatchObject({ expertsPerLayer: 288, quantization: { method: 'auto-round' } });
  });

  it.each([
    ['a web page', '<html>'],
    ['a pointer of git-lfs', 'version https://git-lfs.github.com/spec/v1'],
    ['nothing', ''],
  ])('goes on where config.json is %s, with a finding that refuses', async (_what, content) => {
    payloadFile('config.json', content);
    const { payload, findings } = await inspected();
    expect(payload).toBeNull();
    expect(findings).toContainEqual(expect.objectContaining({ severity: 'refuse', subject: 'payload' }));
  });

  it('has one finding where the payload is missing', async () => {
    host.folders.delete(glm.payload.folder);
    const { findings } = await inspected();
    expect(findings.filter(({ subject }) => subject === 'payload')).toHaveLength(1);
  });

  it('looks at GGUF files as well, which say nothing of experts', async () => {
    const { payload, findings } = await inspected(r9v);
    expect(payload).toBeNull();
    expect(findings).toContainEqual(
      expect.objectContaining({
        severity: 'refuse',
        subject: 'payload',
        message: expect.stringContaining('-00001-of-00004.gguf'),
      }),
    );
  });

  it('says what lies there', async () => {
    const { findings } = await inspected();
    expect(findings).toContainEqual({
      severity: 'note',
      subject: 'payload',
      message: expect.stringMatching(/GLM-5.3-Flash-W4A16-AutoRound: 1 file, 1 tensor, \d+ B$/),
    });
  });

  it('reads no payload where none is wanted', async () => {
    await inspect(host, new Store(host, glm.service), glm.service, 'test', undefined);
    expect(host.calls.filter((call) => call.startsWith('read part'))).toEqual([]);
  });

  it('keeps no result of a payload that was changed since', async () => {
    const result = (check: string, at: string) => ({ check, at, result: 'failed: model.safetensors' });
    const [before, after] = ['1970-01-01T00:00:00.000Z', '2026-11-30T00:00:00.000Z'];
    const old = [result('image', before), result('payload', before), result('payload hashes', before)];
    const store = new Store(host, glm.service);
    await store.savePreflight(releaseIdOf(glm), [...old, result('payload', after)]);
    expect((await inspected()).preflight).toEqual([result('image', before), result('payload', after)]);
  });

  it('writes nothing', async () => {
    await inspected();
    expect(host.calls.filter((call) => /^(?:write|append|remove)/.test(call))).toEqual([]);
  });
});

describe('the memory of a host', () => {
  const gtt = (pci: string): string => `/sys/bus/pci/devices/${pci}/mem_info_gtt_used`;
  const runEngine = (): void => {
    host.engine = { release: glm, startedAt: 0, invocation: 'i', dead: false };
  };
  const statistics = `/sys/fs/cgroup/system.slice/${glm.service}.service/memory.stat`;

  it('is forecast without an engine as it is', async () => {
    host.files.set(gtt(glm.gpus[0] ?? ''), String(100 * gib));
    const { memory, memAvailableBytes } = await inspected();
    expect(memory).toEqual({ totalBytes: 384 * gib, afterStopBytes: memAvailableBytes, gpuPagesBytes: null });
  });

  it('is forecast with what the engine has by itself', async () => {
    runEngine();
    host.files.set(statistics, `anon ${50 * gib}\nfile 7\n`);
    expect((await inspected()).memory?.afterStopBytes).toBe(350 * gib);
  });

  it('is forecast with what the GPUs have mapped where that is more, and not with both', async () => {
    runEngine();
    host.files.set(statistics, `anon ${50 * gib}\n`);
    for (const pci of glm.gpus) host.files.set(gtt(pci), `${40 * gib}\n`);
    expect((await inspected()).memory?.afterStopBytes).toBe(380 * gib);
  });

  it.each(['', 'none\n', '-1\n', '1e9\n'])('is not forecast by what is no number, %j', async (text) => {
    runEngine();
    host.files.set(gtt(glm.gpus[0] ?? ''), text);
    const { memory, memAvailableBytes } = await inspected();
    expect(memory?.afterStopBytes).toBe(memAvailableBytes);
  });

  it('has a limit for what GPU drivers allocate, in pages', async () => {
    host.files.set('/sys/module/ttm/parameters/pages_limit', '33554432\n');
    expect((await inspected()).memory?.gpuPagesBytes).toBe(128 * gib);
  });

  it('reaches the rules as it was measured', async () => {
    host.files.set('/sys/module/ttm/parameters/pages_limit', '33554432\n');
    payloadFile('config.json', '{}');
    expect(measuredOf(await inspected())).toMatchObject({
      quantization: null,
      memory: {
        availableBytes: 300 * gib,
        totalBytes: 384 * gib,
        gpuPagesBytes: 128 * gib,
        engineRuns: false,
      },
    });
  });

  it('says nothing of the quantization where config.json cannot be read', async () => {
    payloadFile('config.json', '<html>');
    expect(measuredOf(await inspected()).quantization).toBeUndefined();
  });
});
