import { describe, expect, it } from 'vitest';
import { intentOf } from '../../../components/intent.ts';
import { duration, reportOf, unitDiff } from '../../../components/report.ts';
import type { InspectAnswer } from '../../../remote/inspect.ts';
import { type Inspection, inspectionSchema } from '../../../shape/inspection.ts';
import { type Review, reviewOf } from '../../../shape/review.ts';
import { inspection, occupant, qwen, release, transaction } from './samples.ts';

const glm = release();
const nothingToSay: Review = { violations: [], idleExceptions: [] };

function report(answer: InspectAnswer, wanted = glm, review: Review = nothingToSay): string {
  return reportOf({
    host: 'dankserver',
    answer,
    wanted,
    intent: intentOf(answer, wanted),
    review,
  });
}

function seen(changes: Partial<Inspection> = {}): InspectAnswer {
  return { kind: 'inspected', inspection: inspection(changes) };
}

describe('the report of a preview', () => {
  it('is one line when nothing changes', () => {
    expect(report(seen(), qwen)).toMatch(
      /^qwen-fp8-mtp4, release [0-9a-f]{12}, serving, for 26 h \(epoch 12\) on dankserver: nothing to change$/,
    );
  });

  it('keeps warnings when nothing else changes', () => {
    const text = report(
      seen({ findings: [{ severity: 'warn', subject: 'disk', message: '3 GiB left' }] }),
      qwen,
    );
    expect(text.split('\n')[1]).toBe('  warn       disk: 3 GiB left');
  });

  it('says who holds the slot, what changes, and for how long', () => {
    const text = report(seen({ outages: [400, 420, 430] }));
    expect(text).toMatch(/holds now {2}qwen-fp8-mtp4/);
    expect(text).toContain('cutover to glm-w4a16: outage ≈ 7 min (from 3 cutovers on this host)');
  });

  it.each([
    ['a host that answers', seen()],
    ['a host that does not', { kind: 'not-set-up', message: 'run the host stack' } as const],
  ])('does not show a unit with a secret in plain text, on %s', (_what, answer) => {
    const token = `hf_${'a1'.repeat(12)}`;
    const leaking = { ...glm, environment: { A: token }, unit: `${glm.unit}# A=${token}\n` };
    const text = report(answer, leaking, reviewOf(leaking));
    expect(text).toContain('refuse no-secret-in-unit');
    expect(text).not.toContain(token);
  });

  it('says that a forecast is only the budget', () => {
    expect(report(seen())).toContain("outage: no history, the shape's boot budget is 20 min");
  });

  it('does not call the boot of an empty slot an outage', () => {
    const text = report(seen({ occupant: null, outages: [420] }));
    expect(text).toContain('no outage, nothing serves now; boot ≈ 7 min (from 1 cutover on this host)');
    expect(text).not.toContain('outage ≈');
  });

  it('says that a record is no outage', () => {
    const text = report(seen({ occupant: occupant(glm) }), release({ port: 7771 }));
    expect(text).toContain('record only, no outage');
    expect(text).not.toContain('≈');
  });

  it('does not call the occupant on record loading while another takes its place', () => {
    const running = transaction(glm, { running: true });
    const text = report(seen({ occupant: occupant(qwen, { state: 'loading' }), transaction: running }));
    expect(text).toMatch(/holds now {2}qwen-fp8-mtp4, release \w{12}, cutover of glm-w4a16 under way/);
    expect(text).not.toContain('loading');
  });

  it('shows what does not hold of an unhealthy occupant', () => {
    const text = report(seen({ occupant: occupant(qwen, { state: 'unhealthy', faults: ['runtime mask'] }) }));
    expect(text).toContain('unhealthy, runtime mask');
  });

  it('shows the whole unit for a host that did not answer', () => {
    const text = report({ kind: 'not-set-up', message: 'run pulumi up -s dankserver' });
    expect(text).toMatch(/^dankserver did not answer, this is the static plan: /);
    expect(text).toContain('+LimitMEMLOCK=infinity');
  });

  it('has the memory plan after what the host says, by what was measured there', () => {
    const memory = { totalBytes: 256 * 2 ** 30, afterStopBytes: 235 * 2 ** 30, gpuPagesBytes: null };
    const text = report(seen({ memory }));
    expect(text).toMatch(/^GPU memory +32\.00 GiB +measured /m);
    expect(text).toMatch(/^after the stop +235\.00 GiB +measured /m);
    expect(text.indexOf('holds now')).toBeLessThan(text.search(/^memory +per rank/m));
  });

  it('has the memory plan by the record alone for a host that did not answer', () => {
    const text = report({ kind: 'not-set-up', message: 'run pulumi up -s dankserver' });
    expect(text).toMatch(/^MemAvailable gate +230\.00 GiB +configured /m);
    expect(text).not.toContain('  measured  ');
  });

  it('has no memory plan where nothing changes', () => {
    expect(report(seen(), qwen)).not.toContain('per rank');
  });

  it('understands an agent of before there was a memory plan', () => {
    const answer = inspection();
    expect(inspectionSchema.parse(JSON.parse(JSON.stringify(answer)))).toEqual(answer);
    expect(answer).not.toHaveProperty('memory');
    expect(report(seen())).toMatch(/^MemAvailable +80\.00 GiB +measured /m);
  });

  it('shows cached preflight results with their time', () => {
    const text = report(
      seen({ preflight: [{ check: 'patches apply', at: '2026-11-29T11:00:00Z', result: 'ok' }] }),
    );
    expect(text).toContain(`preflight  at 2026-11-29 11:00 UTC\n${' '.repeat(13)}patches apply: ok`);
  });
});

describe('the diff of the unit', () => {
  const installed = {
    path: '/run/systemd/system/frank-archon.service',
    text: glm.unit.replace('LimitMEMLOCK=infinity', 'LimitMEMLOCK=8M'),
  };

  it('shows the changed line and names both files', () => {
    const diff = unitDiff(installed, glm);
    expect(diff).toContain('--- /run/systemd/system/frank-archon.service\tinstalled');
    expect(diff).toContain('+++ /usr/local/lib/systemd/system/frank-archon.service\twanted');
    expect(diff).toContain('-LimitMEMLOCK=8M\n+LimitMEMLOCK=infinity');
  });

  it('is empty when the installed unit is the wanted one', () => {
    expect(unitDiff({ ...installed, text: glm.unit }, glm)).toBe('');
  });
});

describe('a duration', () => {
  it.each([
    [-3, '0 s'],
    [0.4, '0 s'],
    [89, '89 s'],
    [90, '2 min'],
    [420, '7 min'],
    [5399, '90 min'],
    [5400, '2 h'],
    [129_600, '2 days'],
  ])('of %d s reads %s', (seconds, text) => {
    expect(duration(seconds)).toBe(text);
  });
});
