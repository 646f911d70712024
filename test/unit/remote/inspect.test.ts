import { describe, expect, it } from 'vitest';
import { answerOf } from '../../../remote/inspect.ts';
import type { Inspection } from '../../../shape/inspection.ts';

const host = { name: 'dankserver' };
const inspection: Inspection = {
  version: 1,
  agent: '0.1.0',
  hostname: 'dankserver',
  service: 'frank-archon',
  at: '2026-10-01T00:00:00Z',
  epoch: 0,
  changed: 'nobody yet',
  occupant: null,
  transaction: null,
  installedUnit: null,
  outages: [],
  quarantine: null,
  findings: [],
  preflight: [],
  memAvailableBytes: 1,
  gpus: [],
};

describe('the host’s answer', () => {
  it('is taken when it has the agreed form', () => {
    expect(answerOf(host, JSON.stringify(inspection))).toEqual({ kind: 'inspected', inspection });
  });

  it('of another agent version is not guessed at, and names the command that brings both together', () => {
    const answer = answerOf(host, JSON.stringify({ ...inspection, version: 2, agent: '0.9.0' }));
    expect(answer.kind).toBe('not-set-up');
    expect(answer).toHaveProperty(
      'message',
      expect.stringMatching(/agent 0\.9\.0 .*`pulumi up -s dankserver`/s),
    );
  });

  it('that is cut off is not taken', () => {
    expect(answerOf(host, JSON.stringify(inspection).slice(0, -5)).kind).toBe('not-set-up');
  });
});
