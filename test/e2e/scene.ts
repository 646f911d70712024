import { expect } from 'vitest';
import type { Change, ShapeStack } from '../../lab/overlay.ts';
import type { Stage } from '../../lab/stage.ts';
import { HostView } from './host-view.ts';

export const glm = 'glm-w4a16';
export const qwen = 'qwen-fp8-mtp4';
export const r9v = 'r9v-q8_0';

export const environmentKey = (name: string) => ['config', 'slot:shape', 'environment', name];
export const deadlineKey = (name: string) => ['config', 'slot:shape', 'deadlines', name];

export const servedNames: Readonly<Record<ShapeStack, readonly string[]>> = {
  [glm]: ['glm53-flash', 'wire'],
  [qwen]: ['qwen38-flash-next', 'wire'],
  [r9v]: ['qwen38-flash-next', 'wire'],
};

/** What the tests of a whole life do again and again on their stage. */
export class Scene {
  readonly stage: Stage;
  readonly host: HostView;

  constructor(stage: Stage) {
    this.stage = stage;
    this.host = new HostView(stage.lab);
  }

  async up(stack: string, ...more: string[]): Promise<string> {
    const { exitCode, output } = await this.stage.workplace.up(stack, ...more);
    expect(exitCode, output).toBe(0);
    return output;
  }

  /** An `up` that has to fail; its output. */
  async failingUp(stack: string, ...more: string[]): Promise<string> {
    const { exitCode, output } = await this.stage.workplace.up(stack, ...more);
    expect(exitCode, output).not.toBe(0);
    return output;
  }

  async upWithoutChanges(stack: string): Promise<void> {
    expect(await this.up(stack)).not.toMatch(/\d+ (created|updated|replaced)/);
  }

  async serves(stack: ShapeStack): Promise<void> {
    expect(await this.host.servedNames()).toEqual(servedNames[stack]);
    expect(await this.host.answerOf('wire')).toContain('4');
    const { occupant } = await this.host.status();
    expect(occupant).toMatchObject({ shape: stack, state: 'serving', faults: [] });
  }

  lay(stack: ShapeStack, changes: readonly Change[] = []): Promise<void> {
    return this.stage.workplace.lay(stack, changes);
  }

  /** Runs an act that must leave the engine alone. */
  async withoutRestart(act: () => Promise<unknown>): Promise<void> {
    const before = await this.host.invocation();
    await act();
    expect(await this.host.invocation()).toBe(before);
  }

  /** Waits until a cutover has reached a phase. */
  untilPhase(phase: string, limitSeconds = 60): Promise<void> {
    return this.host.until(`phase ${phase}`, limitSeconds, async () => {
      const { transaction } = await this.host.status();
      return transaction?.running === true && transaction.phase === phase;
    });
  }

  untilNoTransactionRuns(limitSeconds = 90): Promise<void> {
    return this.host.until('the end of the transaction', limitSeconds, async () => {
      const { transaction } = await this.host.status();
      return transaction?.running !== true;
    });
  }
}
