import { apiKeyVariables } from '../shape/engines/api-key.ts';
import type { Release } from '../shape/release.ts';
import type { Outside } from './outside.ts';
import { inspectContainer } from './podman.ts';
import { environmentOf } from './processes.ts';

/**
 * The key that the running engine asks of its clients, as its own process has it; undefined: it asks for none. It
 * goes into requests alone, never into a message, a record or a log.
 *
 * @throws Error where the release has a key and its engine's process cannot be read
 */
export async function apiKey(outside: Outside, release: Release): Promise<string | undefined> {
  const variable = apiKeyVariables[release.engineKind];
  if (!release.secrets.some((secret) => secret.variable === variable)) return undefined;
  const container = await inspectContainer(outside, release.container);
  const environment = container && (await environmentOf(outside, container.State.Pid));
  const key = environment?.get(variable);
  if (key === undefined) throw new Error(`the engine's process has no ${variable} to ask it with`);
  // llama.cpp takes several, joined by commas.
  return release.engineKind === 'r9v' ? key.split(',')[0] : key;
}
