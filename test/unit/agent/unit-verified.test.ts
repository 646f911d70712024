import { describe, expect, it } from 'vitest';
import type { CommandResult } from '../../../agent/outside.ts';
import { preflight } from '../../../agent/preflight.ts';
import { Progress } from '../../../agent/progress.ts';
import { Store } from '../../../agent/store.ts';
import { releaseIdOf } from '../../../shape/release.ts';
import { planned } from '../shape/rules/rule-cases.ts';
import { SimulatedHost } from './simulated-host.ts';

const release = planned('r9v-q8_0', { host: { deviceFiles: [], gpus: [] } });
const { service } = release;

/** A host whose systemd says this of the unit. */
class Verifying extends SimulatedHost {
  readonly #verdict: CommandResult;

  constructor(verdict: Partial<CommandResult>) {
    super(service, [release]);
    for (const folder of release.stateFolders) this.folders.add(folder);
    this.#verdict = { exitCode: 0, stdout: '', stderr: '', ...verdict };
  }

  override async run(command: string, args: readonly string[]): Promise<CommandResult> {
    return command === 'systemd-analyze' ? this.#verdict : super.run(command, args);
  }
}

async function preflightOn(host: SimulatedHost): Promise<unknown> {
  const store = new Store(host, service);
  const progress = new Progress(host, async () => undefined);
  return preflight({ outside: host, service, store, progress, release });
}

describe('a unit that systemd would take in part', () => {
  const said = (message: string) => `/run/slot-verify-1/${service}.service:9: ${message}`;

  it.each([
    ['a key that it does not know', said("Unknown key 'LimitMemLock' in section [Service], ignoring.")],
    ['a value that it ignores', said('Failed to parse TimeoutStartSec= parameter, ignoring: forever')],
    [
      'a key in the wrong section',
      said("Unknown key 'StartLimitIntervalSec' in section [Service], ignoring."),
    ],
    [
      'an assignment that it drops',
      said('Failed to resolve unit specifiers in A=50%20, ignoring: Invalid slot'),
    ],
  ])('is refused before anything stops, although its verdict is 0: %s', async (_what, stderr) => {
    await expect(preflightOn(new Verifying({ stderr }))).rejects.toMatchObject({
      stage: 'preflight: unit',
      message: expect.stringContaining(stderr),
    });
  });

  it('is refused whatever it says where its verdict is not 0', async () => {
    await expect(preflightOn(new Verifying({ exitCode: 1 }))).rejects.toMatchObject({
      stage: 'preflight: unit',
    });
  });

  it('is told from one that it takes whole', async () => {
    const host = new Verifying({});
    // What comes after it may stop at what this host does not have.
    await preflightOn(host).catch(() => undefined);
    expect(await new Store(host, service).preflight(releaseIdOf(release))).toContainEqual(
      expect.objectContaining({ check: 'unit', result: 'systemd takes it without a message' }),
    );
  });
});
