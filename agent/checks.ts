import * as z from 'zod';
import type { Check } from '../shape/checks.ts';
import { jsonOrUndefined } from '../shape/json.ts';
import type { Release } from '../shape/release.ts';
import { apiKey } from './api-key.ts';
import { engineUrl } from './conjunction.ts';
import type { Outside } from './outside.ts';

/** A check that did not get the answer it expects. */
export class CheckFailure extends Error {
  readonly check: string;

  constructor(check: string, message: string) {
    super(message);
    this.check = check;
  }
}

const modelsSchema = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      max_model_len: z.number().nullish(),
      /** llama.cpp's place for the length. */
      meta: z.object({ n_ctx: z.number().nullish() }).nullish(),
    }),
  ),
});

const completionSchema = z.object({
  model: z.string().optional(),
  choices: z
    .array(
      z.object({
        finish_reason: z.string().nullish(),
        message: z.object({
          content: z.string().nullish(),
          reasoning: z.string().nullish(),
          reasoning_content: z.string().nullish(),
          tool_calls: z
            .array(z.object({ function: z.object({ name: z.string(), arguments: z.string() }) }))
            .nullish(),
        }),
      }),
    )
    .min(1),
});

/** The tool that the record uses for its check of tool calls. */
const getWeather = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Current weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};

export function nameOf(check: Check): string {
  return check.kind === 'models' ? 'served names' : `${check.kind} as ${check.servedName}`;
}

/** Asks the engine and throws a `CheckFailure` that says what was expected and what came. */
export async function perform(outside: Outside, release: Release, check: Check): Promise<void> {
  const seconds = release.deadlines.checkSeconds;
  const fail = (message: string): never => {
    throw new CheckFailure(nameOf(check), message);
  };
  const key = await apiKey(outside, release).catch((error: Error) => fail(error.message));
  const ask = async <T>(schema: z.ZodType<T>, path: string, body?: unknown): Promise<T> => {
    const method = body === undefined ? 'GET' : 'POST';
    const answer = await outside
      .request(method, engineUrl(release, path), body, seconds, key)
      .catch((error: Error) => fail(error.message));
    if (answer.status !== 200) fail(`status ${answer.status}: ${answer.body.slice(0, 300)}`);
    const parsed = schema.safeParse(jsonOrUndefined(answer.body));
    return parsed.success ? parsed.data : fail(`not the expected form: ${answer.body.slice(0, 300)}`);
  };
  const chat = async (servedName: string, maxTokens: number, prompt: string, more: object = {}) => {
    const completion = await ask(completionSchema, '/v1/chat/completions', {
      model: servedName,
      temperature: 0,
      max_tokens: maxTokens,
      messages: [{ role: 'user', content: prompt }],
      ...more,
    });
    return completion.choices[0] ?? fail('no choice');
  };

  switch (check.kind) {
    case 'models': {
      const { data } = await ask(modelsSchema, '/v1/models');
      const names = data.map((model) => model.id);
      const missing = release.servedNames.filter((name) => !names.includes(name));
      const foreign = names.filter((name) => !release.servedNames.includes(name));
      if (missing.length > 0 || foreign.length > 0) {
        fail(`the engine serves ${names.join(', ') || 'nothing'}, wanted ${release.servedNames.join(', ')}`);
      }
      for (const model of data) {
        const told = model.max_model_len ?? model.meta?.n_ctx ?? undefined;
        if (told === undefined && release.engineKind === 'r9v') continue;
        if (told !== release.maxModelLength) {
          fail(`${model.id} has a max length of ${told ?? 'unknown'}, wanted ${release.maxModelLength}`);
        }
      }
      return;
    }
    case 'completion': {
      const { message } = await chat(check.servedName, check.maxTokens, check.prompt);
      const text = message.content?.trim() ?? '';
      if (text === '') fail(`an empty answer to ${JSON.stringify(check.prompt)}`);
      if (text.length > 3 && new Set(text).size === 1) fail(`one repeated character: ${text.slice(0, 40)}`);
      if (check.expect !== undefined && !text.toLowerCase().includes(check.expect.toLowerCase())) {
        fail(`answered ${JSON.stringify(text.slice(0, 200))}, which lacks ${JSON.stringify(check.expect)}`);
      }
      if (check.reasoningField !== undefined) {
        if (/<\/?think>/.test(text)) fail('thinking leaks into content');
        if (!message[check.reasoningField]) fail(`the field ${check.reasoningField} is empty`);
      }
      return;
    }
    case 'tool-call': {
      const { finish_reason, message } = await chat(
        check.servedName,
        check.maxTokens,
        'What is the weather in Paris? Use the tool.',
        { tools: [getWeather], tool_choice: 'auto' },
      );
      const call = message.tool_calls?.[0]?.function;
      if (finish_reason !== 'tool_calls' || call === undefined) {
        return fail(
          `finish_reason is ${finish_reason ?? 'absent'}, no tool call: ${message.content?.slice(0, 200)}`,
        );
      }
      if (call.name !== getWeather.function.name) fail(`called ${call.name} instead of get_weather`);
      const parsed = z.object({ city: z.string() }).safeParse(jsonOrUndefined(call.arguments));
      if (!parsed.success) fail(`arguments are not what the tool takes: ${call.arguments}`);
      return;
    }
  }
}
