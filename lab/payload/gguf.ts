import type { SparseFile } from './safetensors.ts';

export interface GgufContent {
  readonly version?: number;
  readonly architecture?: string;
  /** This part, from 0, and all parts. */
  readonly split?: { readonly number: number; readonly count: number; readonly tensors: number };
  /** Texts of the tokenizer, which stand before the split. */
  readonly tokens?: readonly string[];
  /** Elements of each tensor, of type Q8_0: a multiple of 32. */
  readonly tensors: Readonly<Record<string, number>>;
}

const alignment = 32;
const q8_0 = { type: 8, elements: 32, bytes: 34 };
const types = { u16: 2, u32: 4, i32: 5, text: 8, list: 9 };

/** A GGUF file as gguf-split writes it: what concerns the split stands behind everything else. */
export function ggufFile({
  version = 3,
  architecture = 'qwen3next',
  split,
  tokens,
  tensors,
}: GgufContent): SparseFile {
  const metadata = [
    pair('general.architecture', types.text, text(architecture)),
    pair('general.alignment', types.u32, number(alignment, 4)),
    ...(tokens === undefined
      ? []
      : [
          pair('tokenizer.ggml.model', types.text, text('gpt2')),
          pair('tokenizer.chat_template', types.text, text('{{ messages }}')),
          pair(
            'tokenizer.ggml.tokens',
            types.list,
            Buffer.concat([number(types.text, 4), number(tokens.length, 8), ...tokens.map(text)]),
          ),
        ]),
    ...(split === undefined
      ? []
      : [
          pair('split.no', types.u16, number(split.number, 2)),
          pair('split.count', types.u16, number(split.count, 2)),
          pair('split.tensors.count', types.i32, number(split.tensors, 4)),
        ]),
  ];
  let offset = 0;
  const described = Object.entries(tensors).map(([name, elements]) => {
    const at = offset;
    offset += padded((elements / q8_0.elements) * q8_0.bytes);
    return Buffer.concat([
      text(name),
      number(1, 4),
      number(elements, 8),
      number(q8_0.type, 4),
      number(at, 8),
    ]);
  });
  const header = Buffer.concat([
    Buffer.from('GGUF'),
    number(version, 4),
    number(described.length, 8),
    number(metadata.length, 8),
    ...metadata,
    ...described,
  ]);
  const beginning = Buffer.concat([header, Buffer.alloc(padded(header.length) - header.length)]);
  return { beginning, fileBytes: beginning.length + offset };
}

function pair(key: string, type: number, value: Buffer): Buffer {
  return Buffer.concat([text(key), number(type, 4), value]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([number(bytes.length, 8), bytes]);
}

function number(value: number, bytes: 2 | 4 | 8): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntLE(value, 0, Math.min(bytes, 6));
  return buffer;
}

function padded(bytes: number): number {
  return Math.ceil(bytes / alignment) * alignment;
}
