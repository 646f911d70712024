/** The variable from which an engine reads the key that it asks of its clients. */
export const apiKeyVariables = { vllm: 'VLLM_API_KEY', r9v: 'LLAMA_API_KEY' } as const;
