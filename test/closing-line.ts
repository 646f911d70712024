import type { Reporter, TestModule } from 'vitest/node';

/** Ends a run with one plain line that programs can read: `N passed, N failed[, N skipped]`. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed' || state === 'skipped') count[state] += 1;
        else count.failed += 1;
      }
      if (module.state() === 'failed' && module.errors().length > 0) count.failed += 1;
    }
    const skipped = count.skipped === 0 ? '' : `, ${count.skipped} skipped`;
    // After the other reporters' summary, which is printed in the same turn.
    process.once('exit', () => console.log(`${count.passed} passed, ${count.failed} failed${skipped}`));
  }
}
