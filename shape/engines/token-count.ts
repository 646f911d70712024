import * as z from 'zod';

/** Tokens or requests: vLLM keeps lengths as 32-bit numbers (`seq_lens`), llama.cpp its context as well (`n_ctx`). */
export const countSchema = z
  .int()
  .positive()
  .max(2 ** 31 - 1);
