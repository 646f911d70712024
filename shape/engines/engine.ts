import * as z from 'zod';
import type { CommandLine } from './command-line.ts';
import type { EngineInvocation, EnginePlace } from './invocation.ts';
import { llamaCommandLine } from './llama-command-line.ts';
import { invokeR9v, r9vSchema } from './r9v.ts';
import { invokeVllm, vllmSchema } from './vllm.ts';
import { vllmCommandLine } from './vllm-command-line.ts';

export const engineSchema = z.discriminatedUnion('kind', [vllmSchema, r9vSchema], {
  error: 'must be vllm or r9v',
});
export type EngineConfig = z.infer<typeof engineSchema>;

/** What the command lines of the engines are like, by kind. */
export const commandLines: Readonly<Record<EngineConfig['kind'], CommandLine>> = {
  vllm: vllmCommandLine,
  r9v: llamaCommandLine,
};

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
