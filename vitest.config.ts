import { defineConfig } from 'vitest/config';

/** An operator's laptop has neither: there the rest of the tests runs, and this says so. */
const canMakeHosts = process.platform === 'linux' && process.getuid?.() === 0;
if (!canMakeHosts) console.warn('the tests on lab hosts are left out: they need root on Linux');

const labProject = {
  test: {
    name: 'lab',
    include: ['test/lab/**/*.test.ts', 'test/e2e/**/*.test.ts'],
    fileParallelism: false,
    globalSetup: 'test/machine.ts',
    testTimeout: 300_000,
    hookTimeout: 900_000,
    sequence: { groupOrder: 2 },
  },
};

/** Groups run one after another: the lab's measures and time limits must not share the machine with the rest. */
export default defineConfig({
  test: {
    reporters: ['default', './test/closing-line.ts'],
    projects: [
      {
        test: {
          name: 'fast',
          include: ['test/unit/**/*.test.ts', 'test/golden/**/*.test.ts', 'test/lab-engine/**/*.test.ts'],
          maxWorkers: 2,
          testTimeout: 30_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'conformance',
          include: ['test/conformance/**/*.conformance.ts'],
          globalSetup: 'test/machine.ts',
          maxWorkers: 2,
          testTimeout: 60_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
      ...(canMakeHosts ? [labProject] : []),
    ],
  },
});
