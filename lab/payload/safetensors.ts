/** Type and dimensions of a tensor by its name. */
export type Tensors = Readonly<Record<string, readonly [dtype: string, ...shape: number[]]>>;

/** What a file begins with, and how large it is: weights are holes. */
export interface SparseFile {
  readonly beginning: Buffer;
  readonly fileBytes: number;
}

const bitsOf: Readonly<Record<string, number>> = {
  F32: 32,
  I32: 32,
  F16: 16,
  BF16: 16,
  F8_E4M3: 8,
  U8: 8,
  F4: 4,
};

export function safetensorsFile(tensors: Tensors): SparseFile {
  let offset = 0;
  const entries = Object.entries(tensors).map(([name, [dtype, ...shape]]) => {
    const begin = offset;
    offset += (shape.reduce((product, part) => product * part, 1) * (bitsOf[dtype] ?? 8)) / 8;
    return [name, { dtype, shape, data_offsets: [begin, offset] }];
  });
  const header = { __metadata__: { format: 'pt' }, ...Object.fromEntries(entries) };
  const beginning = withLength(JSON.stringify(header));
  return { beginning, fileBytes: beginning.length + offset };
}

/** A header after its length, whatever it is. */
export function withLength(header: string, length = BigInt(Buffer.byteLength(header))): Buffer {
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(length);
  return Buffer.concat([prefix, Buffer.from(header)]);
}

/** `model.safetensors.index.json` of these files. */
export function indexOf(files: Readonly<Record<string, Tensors>>): {
  readonly metadata: { readonly total_size: number };
  readonly weight_map: Readonly<Record<string, string>>;
} {
  const total = Object.values(files).reduce((sum, tensors) => {
    const { beginning, fileBytes } = safetensorsFile(tensors);
    return sum + fileBytes - beginning.length;
  }, 0);
  return {
    metadata: { total_size: total },
    weight_map: Object.fromEntries(
      Object.entries(files).flatMap(([file, tensors]) => Object.keys(tensors).map((name) => [name, file])),
    ),
  };
}
