import { describe, prepareToolchain } from '../toolchain/prepare.ts';

/** Makes the tool chain before the first test that needs it, so that no test's time limit pays for it. */
export default async function setup(): Promise<void> {
  const { report } = await prepareToolchain({ progress: console.error });
  console.error(describe(report));
}
