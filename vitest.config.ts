import { defineConfig } from 'vitest/config';

/** Groups run one after another: the lab's measures and time limits must not share the machine with the rest. */
export default defineConfig({
  test: {
    reporters: ['default', './test/closing-line.ts'],
    projects: [
      {
        test: {
          name: 'fast',
          include: ['test/unit/**/*.test.ts', 'test/golden/**/*.test.ts', 'test/lab-engine/**/*.test.ts'],
          testTimeout: 30_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'conformance',
          include: ['test/conformance/**/*.conformance.ts'],
          globalSetup: 'test/tool-chain.ts',
          maxWorkers: 2,
          testTimeout: 60_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'lab',
          include: ['test/lab/**/*.test.ts', 'test/e2e/**/*.test.ts'],
          fileParallelism: false,
          globalSetup: 'test/tool-chain.ts',
          testTimeout: 300_000,
          hookTimeout: 900_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
