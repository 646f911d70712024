import * as z from 'zod';

/** A form that many values share: a reader learns it once. */
export interface Form {
  /** By which the reference names it, e.g. `size`. */
  readonly name: string;
  /** What a value must be. */
  readonly limit: string;
  readonly examples: readonly string[];
  /** False: keys of many meanings have it, so that an example of one would mislead at another; an editor shows none. */
  readonly fitsAnyMeaning?: false;
  /** What to write where a value is refused; undefined: what `limit` says is enough. */
  readonly remedy?: string;
  /** What an editor holds a value to, where the schema does not say it by itself. */
  readonly pattern?: string;
}

/** The forms of the schemas that have one; what is made of such a schema has its form too. */
export const forms = z.registry<Form>();
