import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { intentOf, manifestText } from '../../../components/intent.ts';
import { engineStates, type Inspection } from '../../../shape/inspection.ts';
import { sealsOf } from '../../../shape/payload-seals.ts';
import { manifestSchema, type Release, releaseIdOf } from '../../../shape/release.ts';
import { claimOfQwen, inspection, occupant, qwen, release, transaction } from './samples.ts';

const glm = release();
const glmWithOtherChecks = release({
  checks: [{ kind: 'models' }, { kind: 'tool-call', servedName: 'glm53-flash', maxTokens: 64 }],
});
const sealedGlm = release({
  payload: { ...glm.payload, verify: 'hashes', manifest: [{ name: 'a', size: 1, sha256: 'a'.repeat(64) }] },
});
const foreign = {
  severity: 'refuse' as const,
  subject: 'drop-in',
  message: '/etc/systemd/system/frank-archon.service.d/old.conf',
};
const failure = {
  at: '2026-11-29T09:00:00Z',
  stage: 'prove: served names',
  message: 'got glm, wanted glm53-flash',
};

function of(seen: Partial<Inspection>, wanted: Release) {
  return intentOf({ kind: 'inspected', inspection: inspection(seen) }, wanted);
}

describe('what an up would do', () => {
  it.each<[situation: string, seen: Partial<Inspection>, wanted: Release, kind: string]>([
    ['another shape serves', {}, glm, 'cutover'],
    ['the slot is empty', { occupant: null }, glm, 'cutover'],
    ['the wanted release serves', {}, qwen, 'unchanged'],
    [
      'the wanted release is still loading',
      { occupant: occupant(qwen, { state: 'loading' }) },
      qwen,
      'record',
    ],
    ['the wanted release has crashed', { occupant: occupant(qwen, { state: 'failed' }) }, qwen, 'cutover'],
    [
      'the wanted release was stopped by hand',
      { occupant: occupant(qwen, { state: 'stopped' }) },
      qwen,
      'cutover',
    ],
    [
      'the wanted release answers but is not whole',
      { occupant: occupant(qwen, { state: 'unhealthy' }) },
      qwen,
      'cutover',
    ],
    ['the same engine serves under other checks', { occupant: occupant(glm) }, glmWithOtherChecks, 'record'],
    [
      'the same engine serves, and the patches of its release cannot be made any more',
      { occupant: occupant(glm), findings: [{ ...foreign, subject: 'patches' }] },
      glmWithOtherChecks,
      'refused',
    ],
    [
      'the same engine serves, and its payload is not as sealed',
      { occupant: occupant(glm), findings: [{ ...foreign, subject: 'payload' }] },
      sealedGlm,
      'refused',
    ],
    [
      'the same engine serves of a payload that nobody asked to be as sealed',
      { occupant: occupant(glm), findings: [{ ...foreign, subject: 'payload' }] },
      glmWithOtherChecks,
      'record',
    ],
    [
      'the same engine serves another payload that lay in the same folder',
      { occupant: occupant(glm, { seals: { [glm.payload.folder]: 'f'.repeat(64) } }) },
      sealedGlm,
      'cutover',
    ],
    [
      'the same engine serves what was not sealed yet',
      { occupant: occupant(glm, { seals: {} }) },
      sealedGlm,
      'record',
    ],
    [
      'the same engine serves what is sealed alike, under other checks',
      { occupant: occupant(glm, { seals: sealsOf(sealedGlm) }) },
      { ...sealedGlm, checks: [] },
      'record',
    ],
    [
      'the same engine loads under other checks',
      { occupant: occupant(glm, { state: 'loading' }) },
      glmWithOtherChecks,
      'record',
    ],
    [
      'the same engine is down under other checks',
      { occupant: occupant(glm, { state: 'failed' }) },
      glmWithOtherChecks,
      'cutover',
    ],
    [
      'a cutover to the wanted release runs',
      { transaction: transaction(glm, { running: true }) },
      glm,
      'join',
    ],
    [
      'a cutover to another release runs',
      { transaction: transaction(qwen, { running: true }) },
      glm,
      'refused',
    ],
    [
      'a cutover to another release runs while ours still serves',
      { transaction: transaction(glm, { running: true }) },
      qwen,
      'refused',
    ],
    [
      'the last cutover to the wanted release is over',
      { transaction: transaction(glm, { running: false }) },
      glm,
      'cutover',
    ],
    ['the wanted release failed here', { quarantine: failure }, glm, 'refused'],
    [
      'the wanted record failed here',
      { occupant: occupant(glm), quarantine: failure },
      glmWithOtherChecks,
      'refused',
    ],
    ['the wanted release serves though it failed once', { quarantine: failure }, qwen, 'unchanged'],
    ['something foreign is in the way', { findings: [foreign] }, glm, 'refused'],
    [
      'something foreign is in the way of a record only',
      { occupant: occupant(glm), findings: [foreign] },
      glmWithOtherChecks,
      'record',
    ],
    ['the host only warns', { findings: [{ ...foreign, severity: 'warn' }] }, glm, 'cutover'],
  ])('%s', (_situation, seen, wanted, kind) => {
    expect(of(seen, wanted).kind).toBe(kind);
  });

  it('is not known for a host that did not answer', () => {
    const intent = intentOf({ kind: 'not-set-up', message: 'run pulumi up -s dankserver' }, glm);
    expect(intent).toMatchObject({ kind: 'unknown', reason: 'run pulumi up -s dankserver' });
  });
});

describe('a refusal', () => {
  it('of a release that failed says when, where, why, and how to lift it', () => {
    const intent = of({ quarantine: failure }, glm);
    const text = intent.kind === 'refused' ? intent.reasons.join('\n') : '';
    for (const part of [
      failure.at,
      failure.stage,
      failure.message,
      `slot release forgive ${releaseIdOf(glm).slice(0, 12)}`,
    ]) {
      expect(text).toContain(part);
    }
  });

  it('names every finding that stands in the way, and no warning', () => {
    const port = { severity: 'refuse' as const, subject: 'port', message: '7770 is held by nginx' };
    const disk = { severity: 'warn' as const, subject: 'disk', message: 'nearly full' };
    const intent = of({ findings: [foreign, port, disk] }, glm);
    expect(intent).toEqual({
      kind: 'refused',
      reasons: [`drop-in: ${foreign.message}`, 'port: 7770 is held by nginx'],
    });
  });

  it('of a busy slot names who holds it and in which phase', () => {
    const intent = of({ transaction: transaction(qwen, { running: true, by: 'ann', phase: 'take' }) }, glm);
    const text = intent.kind === 'refused' ? intent.reasons.join('\n') : '';
    expect(text).toMatch(/qwen-fp8-mtp4.*ann.*2026-11-29T10:00:00Z.*take/);
  });
});

describe('the claim', () => {
  it('of an occupant that stays is the one stored on the host', () => {
    expect(of({}, qwen)).toEqual({ kind: 'unchanged', claim: claimOfQwen });
  });

  it('of a cutover names the live epoch and occupant', () => {
    expect(of({}, glm)).toMatchObject({
      claim: { epoch: 12, token: expect.stringMatching(/^occupant qwen-fp8-mtp4, epoch 12 → glm-w4a16/) },
    });
  });

  it('of a joined transaction is that transaction’s', () => {
    const running = transaction(glm, { running: true });
    expect(of({ transaction: running }, glm)).toMatchObject({ claim: running.claim });
  });

  it('of a repair differs from the one the broken release holds the slot with, even at the same epoch', () => {
    const repair = of({ occupant: occupant(qwen, { state: 'failed' }) }, qwen);
    if (repair.kind !== 'cutover') throw new Error(repair.kind);
    const again = of(
      { occupant: occupant(qwen, { claim: repair.claim, state: 'failed', invocation: 'beef' }) },
      qwen,
    );
    expect(again).toMatchObject({ kind: 'cutover', claim: { epoch: 12 } });
    expect(again.kind === 'cutover' && again.claim.token).not.toBe(repair.claim.token);
  });
});

describe('the expected outage', () => {
  it('is the upper median of past cutovers to this shape', () => {
    expect(of({ outages: [900, 400, 420, 430] }, glm)).toMatchObject({
      outage: { seconds: 430, source: 'history', cutovers: 4, nothingServes: false },
    });
  });

  it('is the boot budget where there is no history', () => {
    expect(of({}, glm)).toMatchObject({ outage: { seconds: 1200, source: 'budget', cutovers: 0 } });
  });

  it('is no outage where nothing serves', () => {
    expect(of({ occupant: null }, glm)).toMatchObject({ outage: { nothingServes: true } });
  });
});

const releases = fc
  .record({
    shape: fc.constantFrom('a', 'b'),
    identity: fc.constantFrom('1', '2'),
    port: fc.constantFrom(7770, 7771),
  })
  .map(({ shape, identity, port }) => release({ shape, engineIdentity: identity.repeat(64), port }));

const situations = fc
  .record({
    held: releases,
    state: fc.constantFrom(...engineStates),

    running: fc.boolean(),
    towards: releases,
    epoch: fc.nat(3),
  })
  .map(({ held, state, running, towards, epoch }) => ({
    held,
    seen: inspection({
      epoch,
      occupant: occupant(held, {
        state,

        claim: {
          epoch,
          token: `occupant ${held.shape}, epoch ${epoch} → ${held.shape}, release ${releaseIdOf(held).slice(0, 12)}`,
        },
      }),
      transaction: transaction(towards, { running }),
    }),
  }));

describe('for any situation', () => {
  it('the same view and wish give the same intent', () => {
    fc.assert(
      fc.property(situations, releases, ({ seen }, wanted) => {
        const view = { kind: 'inspected' as const, inspection: seen };
        expect(intentOf(structuredClone(view), structuredClone(wanted))).toEqual(intentOf(view, wanted));
      }),
    );
  });

  it('Pulumi sees no difference exactly when nothing is to be done', () => {
    fc.assert(
      fc.property(situations, releases, ({ held, seen }, wanted) => {
        const intent = intentOf({ kind: 'inspected', inspection: seen }, wanted);
        if (intent.kind === 'refused' || !seen.occupant) return;
        const same = manifestText(intent.claim, wanted) === manifestText(seen.occupant.claim, held);
        expect(same).toBe(intent.kind === 'unchanged');
      }),
    );
  });
});

describe('the manifest', () => {
  it('is what the host parses', () => {
    expect(manifestSchema.parse(JSON.parse(manifestText(claimOfQwen, glm)))).toEqual({
      version: 1,
      claim: claimOfQwen,
      release: glm,
    });
  });

  it('does not depend on the order in which keys were written', () => {
    const reordered = Object.fromEntries(Object.entries(glm).reverse()) as Release;
    expect(manifestText(claimOfQwen, reordered)).toBe(manifestText(claimOfQwen, glm));
  });

  it('keeps the order of arguments', () => {
    const swapped = release({ arguments: [...glm.arguments].reverse() });
    expect(manifestText(claimOfQwen, swapped)).not.toBe(manifestText(claimOfQwen, glm));
  });

  it('has one argument a line, so that a diff shows the one that changed', () => {
    expect(manifestText(claimOfQwen, glm).split('\n')).toContain('      "131072",');
  });
});
