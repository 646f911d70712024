import { createPatch } from 'diff';
import type { Measured, MeasuredMemory } from '../../../../../shape/measured.ts';
import type { PayloadFacts } from '../../../../../shape/payload-facts.ts';
import type { Release } from '../../../../../shape/release.ts';
import { recordedModel } from '../../../../fixtures/models.ts';
import { type Changes, planned, type RuleCase, type RuleCases } from '../rule-cases.ts';

const model = recordedModel('glm-5.3-flash');
const gib = 2 ** 30;
const pinnedByAll = 2 * 12_096 * 6_536_823;

function glm(changes: Changes = {}): Release {
  return planned('glm-w4a16', { model, ...changes });
}

function withEngine(what: string, engine: object, found?: string): RuleCase {
  return { what, release: glm({ shape: { engine } }), ...(found === undefined ? {} : { found }) };
}

const mtp = { method: 'mtp', num_speculative_tokens: 4 };

const kvCapPatch = (name: string, target: string): Changes => ({
  patches: {
    [name]: [
      `Target: /usr/lib/python3.12/site-packages/${target}`,
      `Base-SHA256: ${'a'.repeat(64)}`,
      `Patched-SHA256: ${'b'.repeat(64)}`,
      '',
      createPatch(target, 'old\n', 'new\n'),
    ].join('\n'),
  },
});

function patched(engine: object, name = 'gpu_worker-kv-cap.patch', target = 'vllm/v1/worker/gpu_worker.py') {
  return glm({ shape: { engine, patches: [name] }, ...kvCapPatch(name, target) });
}

function onHost(memory: Partial<MeasuredMemory>): Measured {
  return { quantization: 'auto-round', memory: { availableBytes: 300 * gib, engineRuns: false, ...memory } };
}

/** The arena of the deployed shape as if it had been seen to be of another size. */
function withArena(arena: number): typeof model {
  const { memory } = model;
  if (memory === undefined) throw new Error('nothing is on record of its memory');
  return { ...model, memory: { ...memory, arenas: memory.arenas.map((seen) => ({ ...seen, arena })) } };
}

/** A model without experts on record, whose weights are not offloaded. */
function resident(expected: object, engine: object = {}): Release {
  return planned('qwen-fp8-mtp4', {
    host: { gpuMemory: { bytes: 32 * gib } as never },
    shape: { engine: { expertOffload: false, gpuMemoryUtilization: 0.98, ...engine }, payload: { expected } },
  });
}

const payload: PayloadFacts = {
  quantization: { method: 'auto-round', bits: 4, groupSize: 128, packing: 'auto_round:auto_gptq' },
  dtype: 'bfloat16',
  layers: 45,
  expertLayers: 42,
  expertsPerLayer: 288,
  expertBytes: 2 * 6_536_823,
  expertDtypes: ['I32', 'F16'],
};

const expected = glm({ shape: { payload: { quantization: 'auto-round' } } });
const withPayload = (what: string, changes: Partial<PayloadFacts>, found?: string): RuleCase => ({
  what,
  release: expected,
  measured: { quantization: 'auto-round', payload: { ...payload, ...changes } },
  ...(found === undefined ? {} : { found }),
});

const asIs: RuleCase = { what: 'the shape as it is', release: glm() };
const ofNoRecord: RuleCase = {
  what: 'a model of which nothing is on record',
  release: planned('qwen-fp8-mtp4', { model: recordedModel('qwen3.8-flash-next') }),
  measured: onHost({ availableBytes: gib, totalBytes: gib, gpuPagesBytes: gib }),
};

export const cases: RuleCases = {
  'kv-cache-fits': {
    fires: [
      withEngine('MTP at 131,072', { speculative: mtp }, '2.07 GiB > 1.74 GiB'),
      withEngine(
        'MTP by another name',
        { speculative: { method: 'glm4_moe_mtp' } },
        'from 440,750 tokens on',
      ),
      withEngine('MTP just below the crossing', { speculative: mtp, maxModelLength: 440_749 }),
      withEngine('a length below the recorded refusal', { maxModelLength: 65_536 }, 'from 91,902 tokens on'),
      withEngine('the last length that does not fit', { maxModelLength: 91_901 }),
      withEngine('one token', { maxModelLength: 1 }),
      withEngine('fewer explicit bytes than are needed', { kvCacheMemory: { bytes: gib } }),
      {
        what: 'MTP and explicit bytes that the cap takes back',
        release: glm({ shape: { engine: { speculative: mtp, kvCacheMemory: { bytes: 4 * gib } } } }),
        found: '2.07 GiB > 1.74 GiB',
      },
      {
        what: 'too few explicit bytes with the cap lifted',
        release: patched({ speculative: mtp, kvCacheMemory: { bytes: 2 * gib } }),
        found: '2.07 GiB > 2.00 GiB',
      },
    ],
    silent: [
      asIs,
      ofNoRecord,
      withEngine('the first length that fits', { maxModelLength: 91_902 }),
      withEngine('MTP from the crossing on', { speculative: mtp, maxModelLength: 440_750 }),
      withEngine('a drafter, whose need is not on record', { speculative: { method: 'dflash' } }),
      withEngine('experts that are not offloaded', { expertOffload: false, speculative: mtp }),
      withEngine('another number of ranks, which was not measured', { tensorParallel: 1, speculative: mtp }),
      {
        what: 'MTP and explicit bytes with the cap lifted, as on record',
        release: patched({ speculative: mtp, kvCacheMemory: { bytes: 3 * gib } }),
      },
    ],
  },
  'kv-cache-bytes-need-patch': {
    fires: [
      withEngine(
        'explicit bytes',
        { kvCacheMemory: { bytes: 3 * gib } },
        '--kv-cache-memory-bytes 3221225472',
      ),
      {
        what: 'a patch of another file',
        release: patched({ kvCacheMemory: { bytes: 3 * gib } }, 'kv-cap.patch', 'vllm/v1/worker/other.py'),
      },
      {
        what: 'another patch of the file',
        release: patched({ kvCacheMemory: { bytes: 3 * gib } }, 'worker-log.patch'),
      },
    ],
    silent: [
      asIs,
      { what: 'the patch', release: patched({ kvCacheMemory: { bytes: 3 * gib } }) },
      withEngine('no offloaded experts', { expertOffload: false, kvCacheMemory: { bytes: 3 * gib } }),
    ],
  },
  'plan-fits-gpu': {
    fires: [
      withEngine(
        'next to nothing claimed',
        { gpuMemoryUtilization: 0.01 },
        'KV reserve at 131,072 tokens 1.66 GiB > 327.68 MiB',
      ),
      withEngine('a length beyond the GPU', { maxModelLength: 10_000_000 }, '126.66 GiB > 31.36 GiB'),
      withEngine('the longest of all lengths', { maxModelLength: 2 ** 31 - 1 }, '26.56 TiB > 31.36 GiB'),
      withEngine(
        'a drafter at a length beyond the GPU',
        { maxModelLength: 1_000_000, speculative: { method: 'dflash' } },
        '54.63 GiB',
      ),
      withEngine(
        'more explicit bytes than are claimed',
        { kvCacheMemory: { bytes: 32 * gib } },
        '--kv-cache-memory-bytes',
      ),
      withEngine('the same without offloaded experts', {
        expertOffload: false,
        kvCacheMemory: { bytes: 32 * gib },
      }),
      withEngine('no explicit bytes at all', { kvCacheMemory: { bytes: 0 } }, '--kv-cache-memory-bytes 0'),
      {
        what: 'more than is claimed, the cap lifted',
        release: patched({ kvCacheMemory: { bytes: 40 * gib } }),
        found: '40.00 GiB > 31.36 GiB',
      },
      {
        what: 'an arena that leaves no room for the reserve',
        release: glm({ model: withArena(31 * gib) }),
        found: '1.30 GiB more than the 31.36 GiB claimed',
      },
      {
        what: 'an arena larger than the GPU',
        release: glm({ model: withArena(33 * gib) }),
        found: 'arena of the experts',
      },
      {
        what: 'a GPU that the host says is small',
        release: glm({ host: { gpuMemory: { bytes: gib } } as never }),
        found: '1.66 GiB > 1003.52 MiB',
      },
      {
        ...asIs,
        what: 'a GPU that was found to be small',
        measured: { quantization: undefined, gpuMemoryBytes: gib },
      },
      {
        what: 'a model of no record on a GPU that is known',
        release: planned('qwen-fp8-mtp4', {
          shape: { engine: { kvCacheMemory: { bytes: 33 * gib } } },
          host: { gpuMemory: { bytes: 32 * gib } } as never,
        }),
      },
    ],
    silent: [
      asIs,
      ofNoRecord,
      withEngine('the recorded baseline', { gpuMemoryUtilization: 0.92, expertPreciseMemory: false }),
      withEngine('the recorded drafter', { speculative: { method: 'dflash' }, maxModelLength: 65_536 }),
      withEngine('explicit bytes that fit', { kvCacheMemory: { bytes: 3 * gib } }),
      withEngine('all that is claimed', { kvCacheMemory: { bytes: Math.floor(32 * gib * 0.98) } }),
      {
        what: 'a GPU that nobody knows',
        release: planned('qwen-fp8-mtp4', { shape: { engine: { kvCacheMemory: { bytes: 64 * gib } } } }),
      },
      { what: 'another engine', release: planned('r9v-q8_0') },
    ],
  },
  'activation-killed': {
    fires: [
      withEngine('what killed two boots', { maxBatchedTokens: 8192, gpuMemoryUtilization: 0.95 }, '2.00 GiB'),
      withEngine('more of both', { maxBatchedTokens: 16_384, gpuMemoryUtilization: 0.98 }),
    ],
    silent: [
      asIs,
      ofNoRecord,
      withEngine('one token less', { maxBatchedTokens: 8191, gpuMemoryUtilization: 0.95 }),
      withEngine('less of the GPU', { maxBatchedTokens: 8192, gpuMemoryUtilization: 0.94 }),
      withEngine('tokens that the engine chooses', { maxBatchedTokens: undefined }),
    ],
  },
  'activation-fits': {
    fires: [
      withEngine('what killed two boots', { maxBatchedTokens: 8192, gpuMemoryUtilization: 0.95 }),
      withEngine('twice the tokens of the shape', { maxBatchedTokens: 4096 }, '1.00 GiB > 655.36 MiB'),
      { ...asIs, what: 'a smaller GPU', measured: { quantization: 'auto-round', gpuMemoryBytes: 16 * gib } },
    ],
    silent: [
      asIs,
      ofNoRecord,
      withEngine('the recorded baseline', { gpuMemoryUtilization: 0.92, expertPreciseMemory: false }),
      withEngine('room for it', { maxBatchedTokens: 8192, gpuMemoryUtilization: 0.93 }),
    ],
  },
  'resident-experts-fit': {
    fires: [
      withEngine('experts on the GPU', { expertOffload: false }, '73.64 GiB > 31.36 GiB'),
      withEngine('all of them on one GPU', { expertOffload: false, tensorParallel: 1 }, '147.28 GiB'),
    ],
    silent: [
      asIs,
      {
        what: 'GPUs that hold them',
        release: glm({ shape: { engine: { expertOffload: false } } }),
        measured: { quantization: 'auto-round', gpuMemoryBytes: 192 * gib },
      },
      { what: 'a model without experts on record', release: ofNoRecord.release },
    ],
  },
  'resident-weights-fit': {
    fires: [
      {
        what: 'weights of twice the GPUs',
        release: resident({ size: { bytes: 128 * gib } }),
        found: 'weights of one rank 64.00 GiB > 31.36 GiB',
      },
      { what: 'weights counted to the byte', release: resident({ bytes: 64 * gib }) },
      {
        what: 'one GPU for what two hold',
        release: resident({ size: { bytes: 40 * gib } }, { tensorParallel: 1 }),
      },
      {
        what: 'a smaller GPU than is on file',
        release: resident({ size: { bytes: 40 * gib } }),
        measured: { quantization: 'auto-round', gpuMemoryBytes: 16 * gib },
        found: '15.68 GiB',
      },
    ],
    silent: [
      { what: 'weights that fit', release: resident({ size: { bytes: 60 * gib } }) },
      { what: 'weights of which nothing is on record', release: resident({ shards: 34 }) },
      {
        what: 'offloaded experts',
        release: glm({ shape: { payload: { expected: { size: { bytes: 170 * gib } } } } }),
      },
      {
        what: 'larger GPUs than are on file',
        release: resident({ size: { bytes: 128 * gib } }),
        measured: { quantization: 'auto-round', gpuMemoryBytes: 192 * gib },
      },
      {
        what: 'GPUs of which nothing is known',
        release: planned('qwen-fp8-mtp4', {
          host: { gpuMemory: undefined } as Changes['host'] & object,
          shape: { engine: { expertOffload: false }, payload: { expected: { size: { bytes: 999 * gib } } } },
        }),
      },
      { what: 'another engine', release: planned('r9v-q8_0') },
    ],
  },
  'memlock-holds-pinned': {
    fires: [
      {
        what: "systemd's own limit",
        release: glm({ shape: { limits: { memlock: { bytes: 8 * 2 ** 20 } } } }),
        found: '73.64 GiB > 8.00 MiB',
      },
      {
        what: 'a byte too few',
        release: glm({ shape: { limits: { memlock: { bytes: pinnedByAll / 2 - 1 } } } }),
      },
    ],
    silent: [
      asIs,
      ofNoRecord,
      {
        what: 'a limit that is just enough',
        release: glm({ shape: { limits: { memlock: { bytes: pinnedByAll / 2 } } } }),
      },
      {
        what: 'experts that are not offloaded',
        release: glm({ shape: { engine: { expertOffload: false }, limits: { memlock: { bytes: 1 } } } }),
      },
    ],
  },
  'pinned-fits-host': {
    fires: [
      { ...asIs, what: 'less MemTotal', measured: onHost({ totalBytes: 128 * gib }), found: 'of MemTotal' },
      {
        ...asIs,
        what: 'less MemAvailable in an empty slot',
        measured: onHost({ availableBytes: pinnedByAll - 1 }),
        found: 'in an empty slot',
      },
      {
        what: 'a gate below what is pinned',
        release: glm({ host: { memoryGate: { bytes: 100 * gib } as never } }),
        found: '147.28 GiB > 100.00 GiB',
      },
    ],
    silent: [
      asIs,
      ofNoRecord,
      { ...asIs, what: 'just enough', measured: onHost({ availableBytes: pinnedByAll }) },
      {
        ...asIs,
        what: 'an engine that gives its memory back',
        measured: onHost({ availableBytes: 80 * gib, engineRuns: true, totalBytes: 256 * gib }),
      },
      { what: 'no gate', release: glm({ host: { memoryGate: undefined } as never }) },
    ],
  },
  'pinned-fits-after-stop': {
    fires: [
      {
        ...asIs,
        what: 'too little given back',
        measured: onHost({ availableBytes: 80 * gib, engineRuns: true, afterStopBytes: 140 * gib }),
        found: '147.28 GiB > 140.00 GiB',
      },
    ],
    silent: [
      asIs,
      ofNoRecord,
      {
        ...asIs,
        what: 'enough given back',
        measured: onHost({ availableBytes: 80 * gib, engineRuns: true, afterStopBytes: 240 * gib }),
      },
      {
        ...asIs,
        what: 'an empty slot, where nothing is given back',
        measured: onHost({ availableBytes: gib, engineRuns: false, afterStopBytes: gib }),
      },
      {
        ...asIs,
        what: 'a host that does not say',
        measured: onHost({ availableBytes: 80 * gib, engineRuns: true }),
      },
    ],
  },
  'pinned-fits-gpu-pages': {
    fires: [
      {
        ...asIs,
        what: 'half of 256 GiB, the default',
        measured: onHost({ gpuPagesBytes: 128 * gib }),
        found: '147.28 GiB > 128.00 GiB',
      },
    ],
    silent: [
      asIs,
      ofNoRecord,
      { ...asIs, what: 'a raised limit', measured: onHost({ gpuPagesBytes: 240 * gib }) },
      { ...asIs, what: 'no such limit', measured: onHost({ gpuPagesBytes: undefined }) },
    ],
  },
  'payload-on-record': {
    fires: [
      withPayload('other experts', { expertsPerLayer: 128 }, 'experts in a layer: 128 instead of 288'),
      withPayload('other layers', { expertLayers: 47 }, 'layers with experts: 47 instead of 42'),
      withPayload('no experts', { expertsPerLayer: 0 }),
      withPayload(
        'another quantization',
        { quantization: { method: 'compressed-tensors', bits: 4, groupSize: 128, packing: null } },
        'quantization: compressed-tensors instead of auto-round',
      ),
      withPayload('no quantization', { quantization: null }, 'quantization: none instead of auto-round'),
    ],
    silent: [
      asIs,
      { what: 'a host that was not asked', release: expected },
      withPayload('the payload on record', {}),
      withPayload("vLLM's name for AutoRound", {
        quantization: { method: 'inc', bits: 4, groupSize: 128, packing: null },
      }),
      withPayload('a payload that does not say', { expertLayers: null, expertsPerLayer: null }),
      { ...asIs, what: 'no quantization expected', measured: { quantization: undefined, payload } },
    ],
  },
};
