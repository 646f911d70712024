/** Something that the operator has to put right; nothing was written. */
export class Refusal extends Error {}

/** Says a refusal in its own words. */
export async function toldAsExitCode(act: () => number | Promise<number>): Promise<number> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    process.stderr.write(`${error.message}\nnothing was written\n`);
    return 1;
  }
}

/** A full disk or a forbidden folder is no fault of this program. */
export function refuseOnFileError<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw code === undefined ? error : new Refusal(message);
  }
}
