import type { Phase } from '../shape/inspection.ts';
import type { Outside } from './outside.ts';

/** Tells whoever waits what happens: phase, elapsed time and what is expected. */
export class Progress {
  readonly #outside: Outside;
  readonly #write: (line: string) => Promise<void>;
  readonly #startedAt: number;
  #phase: Phase = 'preflight';

  constructor(outside: Outside, write: (line: string) => Promise<void>) {
    this.#outside = outside;
    this.#write = write;
    this.#startedAt = outside.monotonicSeconds();
  }

  enter(phase: Phase): void {
    this.#phase = phase;
  }

  /** The phase that a failure is reported with. */
  get phase(): Phase {
    return this.#phase;
  }

  say(text: string): Promise<void> {
    const elapsed = (this.#outside.monotonicSeconds() - this.#startedAt).toFixed(1);
    return this.#write(`[${elapsed.padStart(6)} s] ${this.#phase}: ${text}`);
  }
}

/** Longest silence while something is waited for, in seconds. */
export const heartbeatSeconds = 30;
