/** Tells a person how a piece of work goes on: one line at a time. */
export type Progress = (line: string) => void;

/** How often a phase that goes on says so. */
const reminderSeconds = 15;

/** Runs a phase; says what it is and how long it usually takes, from time to time how far it is, and how long it took. */
export async function phase<T>(
  progress: Progress,
  name: string,
  expectedSeconds: number,
  work: () => Promise<T>,
): Promise<T> {
  const started = Date.now();
  const elapsed = (): string => `${((Date.now() - started) / 1000).toFixed(0)} s`;
  progress(`vm template: ${name} (about ${expectedSeconds} s)`);
  const reminder = setInterval(
    () => progress(`vm template: ${name}: ${elapsed()} of about ${expectedSeconds} s`),
    reminderSeconds * 1000,
  );
  try {
    const result = await work();
    progress(`vm template: ${name}: done in ${elapsed()}`);
    return result;
  } finally {
    clearInterval(reminder);
  }
}
