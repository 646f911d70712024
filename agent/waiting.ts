import type { Outside } from './outside.ts';
import { heartbeatSeconds, type Progress } from './progress.ts';

export interface Wait {
  readonly what: string;
  readonly limitSeconds: number;
  readonly intervalSeconds: number;
  /** What past runs took, in seconds, if any are known. */
  readonly expectedSeconds?: number | undefined;
}

/**
 * Asks again and again until `ask` answers `done`, with a sign of life at least every 30 s. Returns the last
 * obstacle when the limit is reached first.
 */
export async function waitFor(
  outside: Outside,
  progress: Progress,
  wait: Wait,
  ask: () => Promise<{ done: true } | { done: false; obstacle: string }>,
): Promise<string | undefined> {
  const begun = outside.monotonicSeconds();
  let spoken = 0;
  for (;;) {
    const answer = await ask();
    if (answer.done) return undefined;
    const elapsed = outside.monotonicSeconds() - begun;
    if (elapsed >= wait.limitSeconds) return answer.obstacle;
    if (elapsed - spoken >= heartbeatSeconds) {
      spoken = elapsed;
      const expected =
        wait.expectedSeconds === undefined ? '' : ` of about ${Math.round(wait.expectedSeconds)} s expected`;
      await progress.say(
        `${wait.what}: ${Math.round(elapsed)} s${expected}, limit ${wait.limitSeconds} s; ${answer.obstacle}`,
      );
    }
    await outside.sleep(wait.intervalSeconds);
  }
}
