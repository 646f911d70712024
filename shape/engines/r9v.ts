import * as z from 'zod';
import { nonEmptyLineSchema } from '../text.ts';
import { occurrencesIn } from './command-line.ts';
import { extraArgumentsSchema } from './extra-arguments.ts';
import { servedNameSchema } from './flag-value.ts';
import { imageSchema } from './image.ts';
import type { EngineFault, EngineInvocation, EnginePlace } from './invocation.ts';
import { llamaCommandLine } from './llama-command-line.ts';
import { misspeltPlaceholders, servingFaults } from './r9v-arguments.ts';
import { countSchema } from './token-count.ts';

export const r9vSchema = z.strictObject({
  kind: z.literal('r9v').describe('R9V, an engine for GGUF files.'),
  image: imageSchema.describe('What is run.'),
  entrypoint: z
    .array(nonEmptyLineSchema)
    .min(1)
    .optional()
    .describe(
      "The image's own, as `podman image inspect --format '{{json .Config.Entrypoint}}'` shows it; preflight holds the " +
        'image to it before the old engine stops. Without it nothing is compared.',
    ),
  servedName: servedNameSchema.describe('The name by which clients call the model.'),
  maxModelLength: countSchema.describe(
    'Tokens of prompt and answer together, as `/v1/models` must show them.',
  ),
  gpuMemoryUtilization: z
    .number()
    .gt(0)
    .lte(1)
    .default(0.9)
    .describe("Part of each GPU's memory that must be free before it starts, 0 to 1."),
  arguments: extraArgumentsSchema(llamaCommandLine).describe(
    'All arguments in order, flag and value as elements of their own. Replaced within them: `{payload}` and ' +
      '`{state:<name>}` by paths in the container, `{port}`, `{maxModelLength}`, `{servedName}`, `{publicName}` and ' +
      '`{servedNames}` (all, joined by commas). A name in braces that is like one of these is refused; any other text, braces included, ' +
      'stays as it is. One must name `{payload}`, and the engine must be told to listen: `--host 0.0.0.0`.',
  ),
  healthPath: z
    .string()
    .regex(/^\/[A-Za-z0-9/_.-]*$/, 'must be a path of / A-Z a-z 0-9 _ . -')
    .default('/health')
    .describe('Answers 200 when the engine is ready.'),
  tools: z.boolean().default(false).describe('Requests with tools are answered, so a tool call is checked.'),
  reasoning: z.boolean().default(false).describe('Thinking has a field of its own, so that is checked.'),
  ipc: z
    .enum(['host', 'private'])
    .default('private')
    .describe("Whether processes share memory through the host's /dev/shm, or one of the container's own."),
});
export type R9vConfig = z.infer<typeof r9vSchema>;

const placeholder = /\{(payload|port|maxModelLength|servedNames|servedName|publicName|state:[a-z0-9_.-]+)\}/g;

export function invokeR9v(engine: R9vConfig, place: EnginePlace): EngineInvocation {
  const servedNames = [engine.servedName, ...place.publicNames];
  const values = new Map<string, string | undefined>([
    ['payload', place.payload],
    ['port', String(place.port)],
    ['maxModelLength', String(engine.maxModelLength)],
    ['servedName', engine.servedName],
    ['publicName', place.publicNames[0]],
    ['servedNames', servedNames.join(',')],
    ...Object.entries(place.state).map(([name, path]): [string, string] => [`state:${name}`, path]),
  ]);
  const faults: EngineFault[] = [];
  const filled = engine.arguments.map((argument, index) =>
    argument.replaceAll(placeholder, (written, name: string) => {
      const value = values.get(name);
      if (value === undefined) faults.push(unfilled(`arguments[${index}]`, argument, written));
      return value ?? written;
    }),
  );
  const known = [...values.keys()];
  faults.push(
    ...engine.arguments.flatMap((argument, index) => misspeltPlaceholders(argument, index, known)),
    ...servingFaults(filled, place.payload, engine.maxModelLength),
  );
  if (place.publicNames.length > 0 && !/\{(?:publicName|servedNames)\}/.test(engine.arguments.join(' '))) {
    faults.push({
      key: 'arguments',
      value: undefined,
      limit: `must serve ${place.publicNames.join(', ')} as well: the host asks for it`,
      remedy: 'use {servedNames} or {publicName} where the engine takes its names',
    });
  }
  faults.push(...listeningFaults(filled, place.port));
  return {
    entrypoint: engine.entrypoint,
    arguments: filled,
    secrets: {},
    servedNames,
    healthPath: engine.healthPath,
    tools: engine.tools,
    reasoningField: engine.reasoning ? 'reasoning_content' : undefined,
    faults,
  };
}

/** Where the engine's own arguments make it listen: by itself it is 127.0.0.1, port 8080. */
function listeningFaults(words: readonly string[], port: number): readonly EngineFault[] {
  const options = occurrencesIn(words);
  const fault = (value: string | undefined, limit: string, remedy: string): EngineFault => ({
    key: 'arguments',
    value,
    limit,
    remedy,
  });
  const listensOn = `must listen on port ${port}, where the host's clients and checks ask`;
  const ports = options.filter(({ name }) => name === '--port').map(({ values: [first = ''] }) => first);
  const host = options.find(({ name }) => name === '--host')?.values[0];
  const isNamed = words.some((word) => word.match(/\d+/g)?.includes(String(port)));
  return [
    ...ports
      .filter((written) => written !== String(port))
      .map((written) => fault(`--port ${written}`, listensOn, "write '{port}'")),
    ...(ports.length === 0 && !isNamed ? [fault(undefined, listensOn, "add '--port' and '{port}'")] : []),
    // An engine that takes its port another way may take its address another way.
    ...((host === undefined ? ports.length > 0 : !['0.0.0.0', '::'].includes(host))
      ? [
          fault(
            host === undefined ? undefined : `--host ${host}`,
            'must listen on 0.0.0.0: on any other address no client reaches it',
            "write '--host' and '0.0.0.0'",
          ),
        ]
      : []),
  ];
}

function unfilled(key: string, value: string, written: string): EngineFault {
  return {
    key,
    value,
    limit: `must not use ${written}, which has no value`,
    remedy: written === '{publicName}' ? 'set slot:host.publicName' : 'add the folder to slot:shape.state',
  };
}
