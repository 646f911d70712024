import { mkdir, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ggufFile } from './gguf.ts';
import { indexOf, type SparseFile, safetensorsFile, type Tensors, withLength } from './safetensors.ts';

/** Payloads as they are on record: names, headers and sizes are real, weights are holes. */

const glm = {
  // 45 layers, of which 42 have experts, is the lab's choice: only the 42 are on record.
  layers: { first: 3, count: 42 },
  experts: 288,
  shards: 34,
  tensors: 113_074,
  bytes: 170 * 2 ** 30,
};

/** 4096 × 2048 in int4 with groups of 128: for each of two ranks 6.234 MiB, as recorded. */
const expert: Tensors = {
  'down_proj.qweight': ['I32', 256, 4096],
  'down_proj.qzeros': ['I32', 16, 512],
  'down_proj.scales': ['F16', 16, 4096],
  'gate_proj.qweight': ['I32', 512, 2048],
  'gate_proj.qzeros': ['I32', 32, 256],
  'gate_proj.scales': ['F16', 32, 2048],
  'up_proj.qweight': ['I32', 512, 2048],
  'up_proj.qzeros': ['I32', 32, 256],
  'up_proj.scales': ['F16', 32, 2048],
};

type Entries = [name: string, tensor: Tensors[string]][];

/** Files of GLM's payload by their names. */
export function glmTensors(): Readonly<Record<string, Tensors>> {
  const experts = glmExperts();
  const rest = glmRest(experts);
  const extra = rest.splice(-20);
  const part = (entries: Entries, shard: number): Entries => {
    const length = Math.ceil(entries.length / glm.shards);
    return entries.slice(shard * length, (shard + 1) * length);
  };
  const five = (number: number): string => String(number).padStart(5, '0');
  return Object.fromEntries([
    ...Array.from({ length: glm.shards }, (_, shard) => [
      `model-${five(shard + 1)}-of-${five(glm.shards)}.safetensors`,
      Object.fromEntries([...part(rest, shard), ...part(experts, shard)]),
    ]),
    // The record counts two and does not name them.
    ['model_extra_1.safetensors', Object.fromEntries(extra.slice(0, 10))],
    ['model_extra_2.safetensors', Object.fromEntries(extra.slice(10))],
  ]);
}

function glmExperts(): Entries {
  const entries: Entries = [];
  for (let layer = glm.layers.first; layer < glm.layers.first + glm.layers.count; layer += 1) {
    for (let number = 0; number < glm.experts; number += 1) {
      const prefix = `model.language_model.layers.${layer}.mlp.experts.${number}`;
      for (const [name, tensor] of Object.entries(expert)) entries.push([`${prefix}.${name}`, tensor]);
    }
  }
  return entries;
}

/** As many more as are on record, of one size, so that the whole has the recorded one. */
function glmRest(experts: Entries): Entries {
  const one = safetensorsFile(expert);
  const ofExperts = ((one.fileBytes - one.beginning.length) * experts.length) / Object.keys(expert).length;
  const count = glm.tensors - experts.length;
  const columns = 4096;
  const rows = Math.floor((glm.bytes - ofExperts) / count / columns / 2);
  return Array.from({ length: count }, (_, index) => [
    `model.language_model.layers.${index % 45}.rest.${Math.floor(index / 45)}.weight`,
    ['BF16', rows, columns],
  ]);
}

/** `model.safetensors` of the drafter DFlash2, of 2,342,169,800 bytes. */
export function drafterFile(): SparseFile {
  const fileBytes = 2_342_169_800;
  const describe = (bytes: number): Buffer =>
    withLength(JSON.stringify({ 'model.weight': { dtype: 'U8', shape: [bytes], data_offsets: [0, bytes] } }));
  const beginning = describe(fileBytes - describe(fileBytes).length);
  return { beginning, fileBytes };
}

const tokenizer = {
  'tokenizer.json': '{"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}\n',
  'chat_template.jinja': '{% for message in messages %}{{ message.content }}{% endfor %}\n',
};

const glmFolder = 'GLM-5.3-Flash-W4A16-AutoRound';

/** Below this folder, as the shapes name them. */
export async function writePayloads(models: string): Promise<void> {
  await writeGlm(join(models, glmFolder));
  await writeFiles(join(models, 'GLM-5.3-Flash-DFlash2'), {
    'config.json': '{"model_type": "lab"}\n',
    'model.safetensors': drafterFile(),
  });
  await writeFiles(join(models, 'Qwen3.8-Flash-Next-Uncensored-FP8'), {
    ...tokenizer,
    'config.json': '{"model_type": "lab", "quantization_config": {"quant_method": "fp8"}}\n',
    'model.safetensors': safetensorsFile({ 'model.embed_tokens.weight': ['F8_E4M3', 4096, 4096] }),
  });
  await writeFiles(join(models, 'Qwen3.8-Flash-Next-Q8_0'), ggufParts('model', 3));
}

export async function writeGlm(folder: string): Promise<void> {
  const files = glmTensors();
  const config = {
    model_type: 'lab',
    text_config: { n_routed_experts: glm.experts },
    quantization_config: {
      quant_method: 'auto-round',
      bits: 4,
      group_size: 128,
      packing_format: 'auto_round:auto_gptq',
    },
  };
  await writeFiles(folder, {
    ...tokenizer,
    'config.json': `${JSON.stringify(config, null, 2)}\n`,
    'model.safetensors.index.json': `${JSON.stringify(indexOf(files), null, 2)}\n`,
    ...Object.fromEntries(Object.entries(files).map(([name, tensors]) => [name, safetensorsFile(tensors)])),
  });
}

function ggufParts(name: string, count: number): Readonly<Record<string, SparseFile>> {
  const perPart = 4;
  return Object.fromEntries(
    Array.from({ length: count }, (_, number) => [
      `${name}-${String(number + 1).padStart(5, '0')}-of-${String(count).padStart(5, '0')}.gguf`,
      ggufFile({
        split: { number, count, tensors: perPart * count },
        ...(number === 0 && { tokens: ['a', 'b', 'c'] }),
        tensors: Object.fromEntries(
          Array.from({ length: perPart }, (_unused, index) => [
            `blk.${number * perPart + index}.ffn_up_exps.weight`,
            32 * 1024,
          ]),
        ),
      }),
    ]),
  );
}

async function writeFiles(
  folder: string,
  files: Readonly<Record<string, string | SparseFile>>,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    if (typeof content === 'string') await writeFile(join(folder, name), content);
    else await writeSparse(join(folder, name), content);
  }
}

async function writeSparse(path: string, { beginning, fileBytes }: SparseFile): Promise<void> {
  const file = await open(path, 'w');
  try {
    await file.writeFile(beginning);
    await file.truncate(fileBytes);
  } finally {
    await file.close();
  }
}
