import { z } from 'zod';
import { r9vSchema } from './r9v.ts';
import { vllmSchema } from './vllm.ts';

export const engineSchema = z.discriminatedUnion('kind', [vllmSchema, r9vSchema], {
  error: 'must be vllm or r9v',
});
export type EngineConfig = z.infer<typeof engineSchema>;
