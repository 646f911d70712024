/** The experts of a payload by the names of its tensors. */
export interface NamedExperts {
  /** Layers that have experts. */
  readonly layers: number;
  /** Experts of one layer, by their numbers; 0 where one tensor holds all of them. */
  readonly perLayer: { readonly least: number; readonly most: number };
  /** All tensors of one expert, or of all experts of one layer where they are in one. */
  readonly sample: readonly string[];
  /** All experts of a layer are in one tensor, whose first dimension counts them. */
  readonly fused: boolean;
}

/** `….layers.3.mlp.experts.17.up_proj.qweight`, or `….layers.3.mlp.experts.up_proj` for all experts in one. */
const expertTensor = /^(.*?)\blayers\.(\d+)\.(?:.+\.)?experts\.(?:(\d+)\.)?/;

/**
 * Undefined: no tensor is an expert's. Those of multi-token prediction are left out: they are layers behind the
 * model's own, or have a name of their own.
 *
 * @param layers of the model itself; null: not known
 */
export function expertsNamed(names: Iterable<string>, layers: number | null): NamedExperts | undefined {
  // By layer, and there by the expert's number; '' holds what counts for all of the layer.
  const found = new Map<string, Map<string, string[]>>();
  let begun = '\0';
  let tensors: string[] | undefined;
  for (const name of names) {
    // An expert's tensors mostly stand together, and a hundred thousand names take their time.
    if (name.startsWith(begun)) {
      tensors?.push(name);
      continue;
    }
    const [whole, prefix = '', layer = '', expert = ''] = expertTensor.exec(name) ?? [];
    if (whole === undefined) continue;
    begun = expert === '' ? '\0' : whole;
    tensors = undefined;
    if (/(?:^|\.)mtp\b/.test(prefix) || (layers !== null && Number(layer) >= layers)) continue;
    const experts = found.get(layer) ?? new Map<string, string[]>();
    found.set(layer, experts);
    tensors = experts.get(expert) ?? [];
    experts.set(expert, tensors);
    tensors.push(name);
  }
  const [first] = found.values();
  if (first === undefined) return undefined;
  const perLayer = { least: Number.POSITIVE_INFINITY, most: 0 };
  for (const experts of found.values()) {
    const count = experts.size - (experts.has('') ? 1 : 0);
    perLayer.least = Math.min(perLayer.least, count);
    perLayer.most = Math.max(perLayer.most, count);
  }
  const fused = perLayer.most === 0;
  const numbered = [...first].find(([expert]) => expert !== '');
  return {
    layers: found.size,
    perLayer,
    sample: (fused ? first.get('') : numbered?.[1]) ?? [],
    fused,
  };
}
