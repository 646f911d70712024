import * as z from 'zod';
import type { EngineInvocation, EnginePlace } from './invocation.ts';
import { invokeR9v, r9vSchema } from './r9v.ts';
import { invokeVllm, vllmSchema } from './vllm.ts';

export const engineSchema = z.discriminatedUnion('kind', [vllmSchema, r9vSchema], {
  error: 'must be vllm or r9v',
});
export type EngineConfig = z.infer<typeof engineSchema>;

export function invoke(engine: EngineConfig, place: EnginePlace): EngineInvocation {
  switch (engine.kind) {
    case 'vllm':
      return invokeVllm(engine, place);
    case 'r9v':
      return invokeR9v(engine, place);
    default:
      return engine satisfies never;
  }
}
