import { describe, expect, it } from 'vitest';
import { Requests } from '../../../agent/requests.ts';
import { Store } from '../../../agent/store.ts';
import type { Outcome } from '../../../shape/inspection.ts';
import { namesOf } from '../../../shape/names.ts';
import { SimulatedHost } from './simulated-host.ts';

const service = 'frank-archon';
const folder = `${namesOf(service).stateFolder}/requests`;
const outcome: Outcome = {
  kind: 'serving',
  message: 'glm serves and is proved',
  shape: 'glm',
  releaseId: 'f00',
  serves: 'glm',
  epoch: 2,
  startedAt: '2026-10-01T00:00:00Z',
  endedAt: '2026-10-01T00:00:05Z',
  outageSeconds: 5,
};

/** A host on which no transaction's unit is active. */
function requestsOn(host: SimulatedHost): Requests {
  return new Requests(host, new Store(host, service), service);
}

describe('following a transaction', () => {
  it('passes on what it tells, and gives its outcome though its unit is gone', async () => {
    const host = new SimulatedHost(service, []);
    host.files.set(`${folder}/r1.progress`, 'committing\n');
    host.files.set(`${folder}/r1.outcome.json`, JSON.stringify(outcome));
    let told = '';
    const found = await requestsOn(host).follow('r1', (text) => {
      told += text;
    });
    expect(found).toEqual(outcome);
    expect(told).toBe('committing\n');
  });

  it('is given up where the unit ended without an outcome, after a moment in which it may start again', async () => {
    const host = new SimulatedHost(service, []);
    const before = host.monotonicSeconds();
    await expect(requestsOn(host).follow('r1', () => undefined)).rejects.toThrow(
      'journalctl -u frank-archon',
    );
    expect(host.monotonicSeconds() - before).toBeGreaterThan(3);
  });

  it('starts no process more than once a second', async () => {
    const host = new SimulatedHost(service, []);
    const before = host.monotonicSeconds();
    await requestsOn(host)
      .follow('r1', () => undefined)
      .catch(() => undefined);
    const processes = host.calls.filter((call) => call.startsWith('systemctl'));
    expect(processes.length).toBeGreaterThan(1);
    expect(processes.length).toBeLessThanOrEqual(host.monotonicSeconds() - before + 1);
  });
});
