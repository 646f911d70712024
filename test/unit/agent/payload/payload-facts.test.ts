import { execFileSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { realOutside } from '../../../../agent/outside.ts';
import { payloadFactsSchema } from '../../../../shape/payload-facts.ts';
import {
  indexOf,
  int4Expert,
  PayloadFolder,
  safetensors,
  type Tensors,
  withLength,
} from '../../../fixtures/payload.ts';
import { look as lookAt, unhurried } from './look.ts';

let payload: PayloadFolder;

beforeEach(() => {
  payload = new PayloadFolder().writeTokenizer();
});

afterEach(() => payload.remove());

const look = () => lookAt(payload);

/** Layers, experts of each and prefix of a model whose every expert is a tensor of one byte. */
function experts(layers: number, perLayer: number, prefix = 'model.layers'): Tensors {
  return Object.fromEntries(
    Array.from({ length: layers * perLayer }, (_, index) => [
      `${prefix}.${Math.floor(index / perLayer)}.mlp.experts.${index % perLayer}.up_proj.weight`,
      ['U8', 1],
    ]),
  ) as Tensors;
}

const glmConfig = {
  architectures: ['Glm5NextForConditionalGeneration'],
  text_config: { num_hidden_layers: 45, n_routed_experts: 288, first_k_dense_replace: 3, dtype: 'bfloat16' },
  quantization_config: {
    quant_method: 'auto-round',
    bits: 4,
    group_size: 128,
    packing_format: 'auto_round:auto_gptq',
  },
};

describe('a payload like the one on record', () => {
  beforeEach(() => {
    const prefix = 'model.language_model.layers';
    const first: Tensors = {
      ...int4Expert(`${prefix}.3.mlp.experts.0`),
      [`${prefix}.3.mlp.gate.weight`]: ['BF16', 288, 4096],
    };
    const others = Object.fromEntries(
      Object.entries(experts(42 + 3 + 1, 288, prefix)).filter(([name]) => !/\.layers\.[012]\./.test(name)),
    );
    delete others[`${prefix}.3.mlp.experts.0.up_proj.weight`];
    const files = {
      'model-00001-of-00002.safetensors': first,
      'model-00002-of-00002.safetensors': {
        ...others,
        [`${prefix}.3.mlp.shared_experts.up_proj.weight`]: ['U8', 7],
        'model.visual.blocks.0.attn.qkv.weight': ['BF16', 8],
      } as Tensors,
    };
    payload.writeJson('config.json', glmConfig).writeJson('model.safetensors.index.json', indexOf(files));
    for (const [name, tensors] of Object.entries(files)) payload.writeTensors(name, tensors);
  });

  it('says its experts, its layers without that of multi-token prediction, and the slot of one expert', async () => {
    const { facts, findings } = await look();
    expect(findings).toEqual([]);
    expect(facts).toEqual({
      quantization: { method: 'auto-round', bits: 4, groupSize: 128, packing: 'auto_round:auto_gptq' },
      dtype: 'bfloat16',
      layers: 45,
      expertLayers: 42,
      expertsPerLayer: 288,
      expertBytes: 2 * 6.234375 * 2 ** 20,
      expertDtypes: ['F16', 'I32'],
    });
    // The record rounds it to 6.234 MiB.
    expect((facts?.expertBytes ?? 0) / 2 / 2 ** 20).toBeCloseTo(6.234, 3);
  });
});

describe('the configuration of a payload', () => {
  beforeEach(() => {
    payload.writeTensors('model.safetensors', { weight: ['U8', 1] });
  });

  it.each<[string, object, object]>([
    ["Qwen's names", { num_experts: 512, num_hidden_layers: 48 }, { expertsPerLayer: 512, layers: 48 }],
    ["Mixtral's names", { num_local_experts: 8, num_hidden_layers: 32 }, { expertsPerLayer: 8, layers: 32 }],
    ["Ernie's names", { moe_num_experts: 64 }, { expertsPerLayer: 64, layers: null }],
    [
      'a wrapper inside a wrapper',
      { thinker_config: { text_config: { num_experts: 128 } } },
      { expertsPerLayer: 128 },
    ],
    [
      'no experts at all',
      { num_hidden_layers: 32 },
      { expertsPerLayer: null, expertLayers: null, layers: 32 },
    ],
    [
      'dense layers before the others',
      { n_routed_experts: 4, num_hidden_layers: 9, first_k_dense_replace: 2 },
      { expertLayers: 7 },
    ],
    [
      'nulls',
      { num_experts: null, n_routed_experts: 3, quantization_config: null },
      { expertsPerLayer: 3, quantization: null },
    ],
    [
      'a method in capitals',
      { quantization_config: { quant_method: 'Auto-Round' } },
      { quantization: { method: 'auto-round', bits: null, groupSize: null, packing: null } },
    ],
    ['an older key of the type', { torch_dtype: 'float16' }, { dtype: 'float16' }],
    [
      'compressed-tensors',
      { quantization_config: { quant_method: 'compressed-tensors' } },
      { quantization: { method: 'compressed-tensors', bits: null, groupSize: null, packing: null } },
    ],
    [
      'a quantization in the wrapper',
      { text_config: { quantization_config: { quant_method: 'fp8' } } },
      { quantization: { method: 'fp8', bits: null, groupSize: null, packing: null } },
    ],
  ])('with %s is understood', async (_what, config, facts) => {
    payload.writeJson('config.json', config);
    expect(await look()).toMatchObject({ facts, findings: [] });
  });

  it.each<[string, unknown]>([
    ['words for numbers', { num_experts: '288', num_hidden_layers: [4] }],
    ['numbers out of all measure', { num_experts: 1e300, num_hidden_layers: -1 }],
    ['other types throughout', { text_config: 'x', quantization_config: [1], dtype: 7, num_experts: {} }],
    [
      'words that a terminal would obey',
      { dtype: '\u001b[31m', quantization_config: { quant_method: 'a\nb' } },
    ],
    ['names of every object', JSON.parse('{"__proto__": {"num_experts": 5}, "constructor": 1}')],
    ['nothing', {}],
  ])('with %s says nothing', async (_what, config) => {
    payload.writeJson('config.json', config);
    const { facts, findings } = await look();
    expect(findings).toEqual([]);
    expect(facts).toMatchObject({ expertsPerLayer: null, layers: null, quantization: null, dtype: null });
  });

  it.each<[string, string | Uint8Array, RegExp]>([
    [
      'a pointer of git-lfs',
      'version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 3\n',
      /pointer of git-lfs/,
    ],
    ['a web page', '<!DOCTYPE html>\n<html>', /web page/],
    ['an error in XML', '<?xml version="1.0"?><Error/>', /document in XML/],
    ['an error in JSON', '{"error":"Repository not found"}', /a server's answer, "Repository not found"/],
    ['empty', '', /config\.json is empty/],
    ['cut', '{"num_experts": 2', /no JSON/],
    ['begun by a byte order mark', '\ufeff{"num_experts": 2}', /byte order mark/],
    ['no words of Python either', '{"num_experts": Infinite}', /no JSON/],
    ['all brackets', `{"a":[${'[],'.repeat(400_000)}[]]}`, /all brackets/],
    ['a list', '[1]', /no JSON object/],
    ['no text', Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d), /no JSON/],
    ['nested beyond all measure', '['.repeat(1_000_000), /no JSON/],
    ['a deep value', `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`, /^$/],
  ])('that is %s gives a finding and no more', async (_what, content, message) => {
    payload.write('config.json', content);
    const { facts, findings } = await look();
    if (message.source === '^$') {
      expect(findings).toEqual([]);
    } else {
      expect(facts).toBeNull();
      expect(findings).toEqual([
        { severity: 'refuse', subject: 'payload', message: expect.stringMatching(message) },
      ]);
    }
  });

  it('may have numbers that Python alone writes, and texts of the same words', async () => {
    payload.write(
      'config.json',
      '{"limit": [0.0, Infinity, -Infinity, NaN], "dtype": "NaN", "num_experts": 4}',
    );
    expect(await look()).toMatchObject({ facts: { expertsPerLayer: 4, dtype: 'NaN' }, findings: [] });
  });

  it('that is missing gives a finding', async () => {
    expect((await look()).findings[0]?.message).toMatch(/has no config\.json$/);
  });

  it('that is a pipe does not hang the inspection', async () => {
    execFileSync('mkfifo', [join(payload.path, 'config.json')]);
    expect((await look()).findings[0]?.message).toMatch(/socket, pipe or device/);
  });

  it('that links to itself does not end the inspection', async () => {
    symlinkSync('config.json', join(payload.path, 'config.json'));
    expect((await look()).findings[0]?.message).toMatch(/config\.json is a link that leads back to itself/);
  });

  it('that is larger than a quick look reads is said and not read', async () => {
    payload.write('config.json', `{"a":"${'x'.repeat(17 * 2 ** 20)}"}`);
    expect((await look()).findings).toMatchObject([{ severity: 'note' }]);
  });
});

describe('the tensors of a payload', () => {
  beforeEach(() => {
    payload.writeJson('config.json', { num_hidden_layers: 2 });
  });

  it('are found in a single file without an index', async () => {
    payload.writeTensors('model.safetensors', experts(2, 4));
    expect((await look()).facts).toMatchObject({ expertLayers: 2, expertsPerLayer: 4, expertBytes: 1 });
  });

  it('are counted where one tensor holds all experts', async () => {
    payload.writeTensors('model.safetensors', {
      'model.layers.0.mlp.experts.gate_up_proj': ['U8', 128, 64, 10],
      'model.layers.0.mlp.experts.down_proj': ['U8', 128, 32, 10],
      'model.layers.1.mlp.experts.gate_up_proj': ['U8', 128, 64, 10],
    });
    expect((await look()).facts).toMatchObject({ expertLayers: 2, expertsPerLayer: 128, expertBytes: 960 });
  });

  it('of multi-token prediction are none of the model, wherever they stand', async () => {
    payload.writeTensors('model.safetensors', {
      ...experts(2, 4),
      'model.layers.2.mlp.experts.0.up_proj.weight': ['U8', 9],
      'mtp.layers.0.mlp.experts.0.up_proj.weight': ['U8', 9],
    });
    expect((await look()).facts).toMatchObject({ expertLayers: 2, expertsPerLayer: 4, expertBytes: 1 });
  });

  it.each(['a_bias', 'z_bias'])(
    'that count for all experts of a layer, like %s, are no further expert',
    async (name) => {
      payload.writeTensors('model.safetensors', {
        [`model.layers.0.mlp.experts.${name}`]: ['U8', 4],
        ...experts(2, 4),
        [`model.layers.1.mlp.experts.${name}`]: ['U8', 4],
      });
      expect((await look()).facts).toMatchObject({ expertLayers: 2, expertsPerLayer: 4, expertBytes: 1 });
    },
  );

  it('of layers that stand apart are found together', async () => {
    const scrambled = Object.entries(experts(3, 5)).sort(([a], [b]) =>
      a.split('').reverse() < b.split('').reverse() ? -1 : 1,
    );
    payload.writeTensors('model.safetensors', Object.fromEntries(scrambled));
    payload.writeJson('config.json', { num_hidden_layers: 3 });
    expect((await look()).facts).toMatchObject({ expertLayers: 3, expertsPerLayer: 5, expertBytes: 1 });
  });

  it('without experts say nothing of them', async () => {
    payload.writeTensors('model.safetensors', {
      'model.layers.0.mlp.shared_experts.up_proj.weight': ['U8', 9],
    });
    expect(await look()).toMatchObject({ facts: { expertBytes: null, expertsPerLayer: null }, findings: [] });
  });

  it('of layers with different numbers of experts are refused', async () => {
    const { 'model.layers.1.mlp.experts.3.up_proj.weight': _, ...rest } = experts(2, 4);
    payload.writeTensors('model.safetensors', rest as Tensors);
    expect((await look()).findings).toMatchObject([
      { severity: 'refuse', message: expect.stringContaining('3 to 4') },
    ]);
  });

  it('may be in more layers than a call takes arguments', async () => {
    payload.writeJson('config.json', {}).writeTensors('model.safetensors', experts(150_000, 1, 'layers'));
    expect(await look()).toMatchObject({
      facts: { expertLayers: 150_000, expertsPerLayer: 1 },
      findings: [],
    });
  });

  const good = safetensors(experts(1, 1)).beginning;

  it.each<[string, Uint8Array | string, 'refuse' | 'note', RegExp]>([
    ['empty', '', 'refuse', /is empty/],
    ['shorter than its length field', Uint8Array.of(1, 2, 3), 'refuse', /has 3 bytes, too few/],
    [
      'a header of a gigabyte that is not there',
      withLength('{}', 2n ** 30n),
      'refuse',
      /says that its header has 1073741824 bytes/,
    ],
    [
      'a header of all bytes that 64 bits count',
      withLength('{}', 2n ** 64n - 1n),
      'refuse',
      /18446744073709551615/,
    ],
    ['a header of no bytes', withLength(''), 'refuse', /zeros where it begins/],
    [
      'a pointer of git-lfs',
      'version https://git-lfs.github.com/spec/v1\noid sha256:ab\n',
      'refuse',
      /git-lfs/,
    ],
    ['a web page', '<html><body>404</body></html>', 'refuse', /web page/],
    ['a header that is no JSON', withLength('not a header'), 'refuse', /no JSON/],
    [
      'a tensor without places',
      withLength('{"a":{"dtype":"F16","shape":[1]}}'),
      'refuse',
      /the tensor a in no known way/,
    ],
    [
      'a tensor that ends before it begins',
      withLength('{"a":{"dtype":"F16","shape":[1],"data_offsets":[4,2]}}'),
      'refuse',
      /the tensor a in no known way/,
    ],
    [
      'a tensor with a place below zero',
      withLength('{"a":{"dtype":"F16","shape":[1],"data_offsets":[-1,2]}}'),
      'refuse',
      /the tensor a in no known way/,
    ],
    [
      'a tensor of half a byte',
      withLength('{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,1.5]}}'),
      'refuse',
      /the tensor a in no known way/,
    ],
    [
      'a tensor with three places',
      withLength('{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,1,2]}}'),
      'refuse',
      /the tensor a in no known way/,
    ],
    ['a tensor that is null', withLength('{"a":null}'), 'refuse', /the tensor a in no known way/],
    ['a shard without its data', good, 'refuse', /is cut: 1 byte of \d+ is missing/],
  ])('in a file that is %s give a finding and no more', async (_what, content, severity, message) => {
    payload.write('model.safetensors', content);
    expect((await look()).findings).toEqual([
      { severity, subject: 'payload', message: expect.stringMatching(message) },
    ]);
  });

  it('behind a header of more than a quick look reads are left alone', async () => {
    payload.write('model.safetensors', withLength(`{"a":"${' '.repeat(17 * 2 ** 20)}"}`));
    expect((await look()).findings).toMatchObject([{ severity: 'note' }]);
  });

  it.each<[string, unknown, RegExp]>([
    ['no weight_map', {}, /no weight_map/],
    [
      'a weight_map that is empty',
      { weight_map: {} },
      /weight_map of model\.safetensors\.index\.json is empty/,
    ],
    ['a weight_map that is text', { weight_map: 'x' }, /no weight_map/],
    [
      'a file outside the payload',
      { weight_map: { 'layers.0.experts.0.w': '../../etc/passwd' } },
      /no file of the folder/,
    ],
    [
      'a file by its absolute path',
      { weight_map: { 'layers.0.experts.0.w': '/a.safetensors' } },
      /no file of the folder/,
    ],
    ['a number for a file', { weight_map: { 'layers.0.experts.0.w': 7 } }, /no file of the folder/],
    [
      'a file that is missing',
      { weight_map: { 'layers.0.experts.0.w': 'a.safetensors' } },
      /missing: a\.safetensors/,
    ],
  ])('by an index with %s give a finding and no more', async (_what, index, message) => {
    payload.writeJson('model.safetensors.index.json', index);
    expect((await look()).findings).toEqual([
      { severity: 'refuse', subject: 'payload', message: expect.stringMatching(message) },
    ]);
  });

  it('by an index of another export give a finding', async () => {
    payload
      .writeTensors('a.safetensors', { other: ['U8', 1] })
      .writeJson('model.safetensors.index.json', { weight_map: { 'layers.0.experts.0.w': 'a.safetensors' } });
    expect((await look()).findings[0]?.message).toMatch(
      /a\.safetensors is of another export than the index: it holds other, and the index finds layers\.0\.experts\.0\.w there/,
    );
  });

  it('may be spread over many files', async () => {
    payload.writeSet(
      Object.fromEntries(
        Array.from({ length: 9 }, (_, file) => [
          `${file}.safetensors`,
          {
            [`layers.0.experts.0.w${file}`]: ['U8', 1],
            [`layers.0.experts.1.w${file}`]: ['U8', 1],
          } as Tensors,
        ]),
      ),
    );
    expect(await look()).toMatchObject({ facts: { expertsPerLayer: 2, expertBytes: 9 }, findings: [] });
  });

  it('may lie sorted by their type, as files are written', async () => {
    const names = Array.from({ length: 8 }, (_, expert) => `layers.${expert >> 2}.experts.${expert & 3}`);
    payload.writeTensors(
      'model.safetensors',
      Object.fromEntries(
        ['qweight', 'scales'].flatMap((part) => names.map((name) => [`${name}.${part}`, ['U8', 5]])),
      ) as Tensors,
    );
    expect(await look()).toMatchObject({
      facts: { expertLayers: 2, expertsPerLayer: 4, expertBytes: 10 },
      findings: [],
    });
  });

  it('are not looked at when the quick look is over', async () => {
    payload.writeTensors('model.safetensors', experts(1, 1));
    let seconds = 0;
    const slow = { ...realOutside, monotonicSeconds: () => (seconds += 0.3) };
    const { findings } = await lookAt(payload, {}, { outside: slow });
    expect(findings).toContainEqual(
      expect.objectContaining({
        severity: 'note',
        message: expect.stringMatching(/a quick look ends after 2 s/),
      }),
    );
    expect(findings.filter(({ severity }) => severity !== 'note')).toEqual([]);
  });
});

it.each(['Maximum call stack', 'EIO: i/o error, scandir', 'ESTALE: stale file handle'])(
  'a payload that does to its reader what nobody has thought of is not vouched for: %s',
  async (message) => {
    const broken = { ...unhurried, list: () => Promise.reject(new Error(message)) };
    payload.writeJson('config.json', {});
    expect((await lookAt(payload, {}, { outside: broken })).findings).toMatchObject([
      { severity: 'refuse', subject: 'payload', message },
    ]);
  },
);

it('a name that a pattern would take an hour for takes none', async () => {
  const name = `experts.${'layers.1.'.repeat(60_000)}`;
  payload.writeJson('config.json', {}).writeTensors('model.safetensors', { [name]: ['U8', 1] });
  expect((await look()).facts).toMatchObject({ expertLayers: null });
});

describe('whatever lies in a payload', () => {
  const json = fc.oneof(fc.string(), fc.json(), fc.uint8Array(), fc.constantFrom('{}', '{"weight_map":{}}'));

  it('an inspection gets facts of the form that is agreed on, and findings', async () => {
    await fc.assert(
      fc.asyncProperty(json, json, fc.option(json), async (config, shard, index) => {
        payload.write('config.json', config).write('model.safetensors', shard);
        payload.write('model.safetensors.index.json', index ?? '');
        const { facts } = await look();
        if (facts !== null) expect(payloadFactsSchema.safeParse(facts).success).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  it('a header is read as it was written', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 9 }),
        async (layers, perLayer) => {
          payload.writeJson('config.json', {}).writeTensors('model.safetensors', experts(layers, perLayer));
          expect((await look()).facts).toMatchObject({ expertLayers: layers, expertsPerLayer: perLayer });
        },
      ),
      { numRuns: 30 },
    );
  });
});
