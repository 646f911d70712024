/** The experts of a payload by the names of its tensors. */
export interface NamedExperts {
  /** Layers that have experts. */
  readonly layers: number;
  /** Names of one layer's experts; where one tensor holds all of them there is one name for all. */
  readonly perLayer: readonly number[];
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
  const expertsOf = new Map<number, Set<string>>();
  const tensorsOf = new Map<string, string[]>();
  for (const name of names) {
    const [, prefix = '', digits, expert] = expertTensor.exec(name) ?? [];
    const layer = Number(digits);
    if (digits === undefined || /(?:^|\.)mtp\b/.test(prefix) || (layers !== null && layer >= layers))
      continue;
    const key = `${layer}/${expert ?? 'all'}`;
    expertsOf.set(layer, (expertsOf.get(layer) ?? new Set()).add(key));
    const tensors = tensorsOf.get(key);
    if (tensors === undefined) tensorsOf.set(key, [name]);
    else tensors.push(name);
  }
  const [first] = tensorsOf;
  if (first === undefined) return undefined;
  return {
    layers: expertsOf.size,
    perLayer: [...expertsOf.values()].map((experts) => experts.size),
    sample: first[1],
    fused: first[0].endsWith('/all'),
  };
}
