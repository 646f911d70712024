import { Agent, get } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { z } from 'zod';

/** A good answer of `/v1/models`. */
export interface Answer {
  /** When its last byte came, in milliseconds of one clock. */
  readonly atMs: number;
  readonly names: readonly string[];
}

const intervalMs = 10;
const patienceMs = 2000;
const modelsSchema = z.object({ data: z.array(z.object({ id: z.string() })) });

/** A client that asks for the served names every 10 ms, each time on a connection of its own. */
export class Prober {
  readonly #url: string;
  readonly #answers: Answer[] = [];
  readonly #connections = new Agent({ keepAlive: false });
  readonly #timer: NodeJS.Timeout;

  constructor(engineUrl: string) {
    this.#url = `${engineUrl}/v1/models`;
    this.#timer = setInterval(() => this.#ask(), intervalMs);
  }

  get answers(): readonly Answer[] {
    return this.#answers;
  }

  /** Waits for an answer with this name. Throws after the limit. */
  async sees(name: string, limitSeconds: number): Promise<void> {
    const end = performance.now() + limitSeconds * 1000;
    while (!this.#answers.at(-1)?.names.includes(name)) {
      if (performance.now() > end) {
        throw new Error(`${this.#url} did not list ${name} within ${limitSeconds} s`);
      }
      await setTimeout(intervalMs);
    }
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#connections.destroy();
  }

  #ask(): void {
    const signal = AbortSignal.timeout(patienceMs);
    const asked = get(this.#url, { agent: this.#connections, signal }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        body += part;
      });
      response.on('error', () => undefined);
      response.on('end', () => {
        if (response.statusCode !== 200 || !response.complete) return;
        const atMs = performance.now();
        this.#answers.push({ atMs, names: modelsSchema.parse(JSON.parse(body)).data.map(({ id }) => id) });
      });
    });
    // Refused, reset, late: not a good answer, and nothing else is asked of it.
    asked.on('error', () => undefined);
  }
}

/**
 * Seconds from the last good answer of the old engine to the first of the new one. Throws where the answers do
 * not show one change from the old to the new.
 */
export function outageSeconds(answers: readonly Answer[], oldName: string, newName: string): number {
  const first = answers.find(({ names }) => names.includes(newName));
  if (first === undefined) throw new Error(`no good answer of ${newName} was seen`);
  const last = answers.findLast(({ names }) => names.includes(oldName));
  if (last === undefined) throw new Error(`no good answer of ${oldName} was seen`);
  if (last.atMs >= first.atMs) throw new Error(`${oldName} answered after the first answer of ${newName}`);
  return (first.atMs - last.atMs) / 1000;
}
