import { describe, prepareToolchain } from './prepare.ts';

const began = Date.now();
const progress = (line: string) => console.error(line);
try {
  const toolchain = await prepareToolchain({ progress });
  console.log(describe(toolchain.report));
  console.error(`ready after ${((Date.now() - began) / 1000).toFixed(1)} s`);
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
