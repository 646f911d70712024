import { readFileSync } from 'node:fs';
import type { Templates } from '../shape/render.ts';

/** Reads the templates that lie beside this file. */
export function readTemplates(): Templates {
  const read = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');
  return { service: read('engine.service.hbs'), target: read('engine.target.hbs') };
}
