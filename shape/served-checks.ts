import type { Check } from './checks.ts';
import type { EngineInvocation } from './engines/invocation.ts';

/** Room for the thinking before the answer: at 10 tokens a second, the slowest on record, 100 s. */
const maxTokens = 1024;

/** What proves the served surface: names and length, two completions in a row, and a tool call where there are tools. */
export function checksOf({ servedNames, tools, reasoningField }: EngineInvocation): Check[] {
  const [servedName = ''] = servedNames;
  const completion = (name: string): Check => ({
    kind: 'completion',
    servedName: name,
    prompt: 'What is 2+2? Answer with the number alone.',
    expect: '4',
    maxTokens,
    ...(reasoningField === undefined ? {} : { reasoningField }),
  });
  return [
    { kind: 'models' },
    completion(servedName),
    // The second one under the name that clients use.
    completion(servedNames.at(-1) ?? servedName),
    ...(tools ? [{ kind: 'tool-call', servedName, maxTokens } satisfies Check] : []),
  ];
}
