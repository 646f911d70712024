import { readdirSync } from 'node:fs';
import type { RuleCases } from './rule-cases.ts';

const folder = new URL('cases/', import.meta.url);

/** The cases of every file in `cases/`. */
export const allCases: readonly RuleCases[] = await Promise.all(
  readdirSync(folder).map(async (name) => {
    const file: { readonly cases: RuleCases } = await import(new URL(name, folder).href);
    return file.cases;
  }),
);
