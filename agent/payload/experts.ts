import type { JsonObject } from './read-file.ts';
import { type Tensor, tensorIn } from './safetensors.ts';

/** The experts of a payload by its tensors. */
export interface CountedExperts {
  /** Layers that have experts. */
  readonly layers: number;
  /** Experts of one layer, by their numbers; 0 where one tensor holds all of them. */
  readonly perLayer: { readonly least: number; readonly most: number };
  /** All tensors of one expert, or of all experts of one layer where they are in one. */
  readonly sample: readonly Tensor[];
  /** All experts of a layer are in one tensor, whose first dimension counts them. */
  readonly fused: boolean;
}

/** Longer ones are no model's, and take the pattern a time that grows with their square. */
const longestName = 1000;

/** Up to the number in `….layers.3.mlp.experts.17.up_proj.qweight`; `….layers.3.mlp.experts.up_proj` holds all experts. */
const expertTensor = /^(.*?)\blayers\.(\d+)\.(?:.+\.)?experts\./;

/** Digits that end with a dot; undefined: there are none. */
function numberAt(name: string, start: number): number | undefined {
  let number = 0;
  for (let at = start; at < name.length; at += 1) {
    const digit = name.charCodeAt(at) - 48;
    if (digit < 0 || digit > 9) return at > start && name[at] === '.' ? number : undefined;
    number = 10 * number + digit;
  }
  return undefined;
}

/**
 * Sees tensor by tensor, so that no names are kept. Those of multi-token prediction are left out: they are layers
 * behind the model's own, or have a name of their own.
 */
export class ExpertCounter {
  readonly #layers: number | null;
  /** Numbers of the experts by their layer; none where one tensor holds all. */
  readonly #found = new Map<string, Set<number>>();
  /** Of the first layer that is met: tensors of its first expert, and those that hold all of its experts. */
  readonly #numbered: Tensor[] = [];
  readonly #whole: Tensor[] = [];
  #firstLayer: string | undefined;
  #firstExpert: number | undefined;
  /** Of the last tensor: its name up to the number of its expert, its layer and that layer's experts. */
  #prefix = '\0';
  #layer = '';
  #experts = new Set<number>();
  #expert: number | undefined;

  /** @param layers of the model itself; null: not known */
  constructor(layers: number | null) {
    this.#layers = layers;
  }

  see(name: string, tensors: JsonObject): void {
    // Those of a layer mostly stand together, and a hundred thousand names take their time.
    if (!name.startsWith(this.#prefix) && !this.#enterLayer(name)) return;
    const isFirstLayer = this.#layer === this.#firstLayer;
    const expert = numberAt(name, this.#prefix.length);
    if (expert === undefined) {
      if (isFirstLayer) keep(this.#whole, name, tensors);
      return;
    }
    if (expert !== this.#expert) this.#experts.add(expert);
    this.#expert = expert;
    if (!isFirstLayer) return;
    this.#firstExpert ??= expert;
    if (expert === this.#firstExpert) keep(this.#numbered, name, tensors);
  }

  /** Whether it is an expert's. */
  #enterLayer(name: string): boolean {
    if (name.length > longestName || !name.includes('experts.')) return false;
    const [prefix, before = '', layer = ''] = expertTensor.exec(name) ?? [];
    if (prefix === undefined || /(?:^|\.)mtp\b/.test(before)) return false;
    if (this.#layers !== null && Number(layer) >= this.#layers) return false;
    this.#prefix = prefix;
    this.#layer = layer;
    this.#expert = undefined;
    this.#experts = this.#found.get(layer) ?? new Set();
    this.#found.set(layer, this.#experts);
    this.#firstLayer ??= layer;
    return true;
  }

  /** Undefined: no tensor is an expert's. */
  counted(): CountedExperts | undefined {
    if (this.#found.size === 0) return undefined;
    const perLayer = { least: Number.POSITIVE_INFINITY, most: 0 };
    for (const { size } of this.#found.values()) {
      perLayer.least = Math.min(perLayer.least, size);
      perLayer.most = Math.max(perLayer.most, size);
    }
    const fused = perLayer.most === 0;
    return { layers: this.#found.size, perLayer, sample: fused ? this.#whole : this.#numbered, fused };
  }
}

/** More tensors are in no expert. */
const mostOfSample = 1000;

function keep(sample: Tensor[], name: string, tensors: JsonObject): void {
  const tensor = tensorIn(tensors, name);
  if (tensor !== undefined && sample.length < mostOfSample) sample.push(tensor);
}
