import { describe, expect, it } from 'vitest';
import type { Release } from '../../../../shape/release.ts';
import { refusalsIn, reviewOf } from '../../../../shape/review.ts';
import { reviewText, verdictText } from '../../../../shape/review-text.ts';
import { sshHostKey } from '../../../../shape/rules/connection.ts';
import { hostKey } from '../../../fixtures/operator-files.ts';
import { planned } from './rule-cases.ts';

const fp8 = planned('glm-w4a16', { shape: { engine: { kvCacheDtype: 'fp8' } } });
const leaked = `hf_${'aB3'.repeat(10)}`;
const leaking = planned('glm-w4a16', { shape: { environment: { NOTE: leaked } } });
const named = planned('glm-w4a16', { shape: { environment: { HF_TOKEN: 'letmein' } } });

function excepted(release: Release, exceptions: Readonly<Record<string, string>>): Release {
  return { ...release, review: { ...release.review, exceptions } };
}

function refusedBy(release: Release): readonly string[] {
  return refusalsIn(reviewOf(release)).map(({ rule }) => rule.id);
}

describe('a review', () => {
  it('refuses by each rule of severity refuse, and not by one that warns', () => {
    expect(refusedBy(fp8)).toEqual(['glm-kv-cache-fp8']);
    const warned = planned('glm-w4a16', { host: { gpuArchitecture: 'gfx1201' } });
    expect(reviewOf(warned).violations.map(({ rule }) => rule.id)).toContain('nccl-protocol');
    expect(refusedBy(warned)).toEqual([]);
  });

  it('does not refuse what is excepted, and keeps the reason', () => {
    const review = reviewOf(excepted(fp8, { 'glm-kv-cache-fp8': 'a decode op exists now' }));
    expect(refusalsIn(review)).toEqual([]);
    expect(review.violations[0]).toMatchObject({ exception: 'a decode op exists now' });
    expect(review.idleExceptions).toEqual([]);
  });

  it('excepts from the named rule alone', () => {
    expect(refusedBy(excepted(fp8, { 'expert-prefetch': 'none is there' }))).toEqual(['glm-kv-cache-fp8']);
  });

  it('tells of exceptions without need and of rules that are none', () => {
    const review = reviewOf(excepted(planned('glm-w4a16'), { 'expert-prefetch': 'x', 'no-such-rule': 'y' }));
    expect(review.idleExceptions).toEqual(['expert-prefetch', 'no-such-rule']);
  });

  it('does not except from a rule that holds for every shape, whoever says so', () => {
    const review = reviewOf(excepted(leaking, { 'no-secret-in-unit': 'it is only mine' }));
    expect(refusalsIn(review).map(({ rule }) => rule.id)).toEqual(['no-secret-in-unit']);
    expect(review.idleExceptions).toEqual(['no-secret-in-unit']);
  });

  it.each(['', ' ', '\u00a0', '\u200b\u200d', '\u3164', '\u2800', '—', '.'])(
    'takes %j for no reason at all',
    (reason) => {
      const review = reviewOf(excepted(fp8, { 'glm-kv-cache-fp8': reason }));
      expect(refusalsIn(review).map(({ rule }) => rule.id)).toEqual(['glm-kv-cache-fp8']);
      expect(review.idleExceptions).toEqual([]);
    },
  );

  it('excepts a name that only sounds like a secret', () => {
    expect(refusedBy(named)).toEqual(['no-secret-by-name']);
    expect(refusedBy(excepted(named, { 'no-secret-by-name': 'the word of a game' }))).toEqual([]);
  });

  it('judges a release of before there were facts to judge by', () => {
    const { review: _, ...old } = fp8;
    expect(refusedBy(old)).toEqual(['glm-kv-cache-fp8']);
  });
});

describe('the text of a review', () => {
  const textOf = (release: Release): string => reviewText(reviewOf(release)).join('\n');

  it('says verdict, rule, what was found, why, on what evidence and what to do', () => {
    expect(textOf(fp8)).toMatch(
      /^refuse glm-kv-cache-fp8: --kv-cache-dtype fp8\n {4}why: .+\n {4}evidence: .+\n {4}next: .*kvCacheDtype.*slot:shape\.exceptions\.glm-kv-cache-fp8/,
    );
  });

  it('says the reason of an exception instead of a next step', () => {
    const text = textOf(excepted(fp8, { 'glm-kv-cache-fp8': 'a decode op exists now' }));
    expect(text).toMatch(
      /^excepted glm-kv-cache-fp8: .*\n.*\n.*\n {4}excepted because: a decode op exists now/,
    );
  });

  it('does not propose an exception where none can be had', () => {
    const text = textOf(leaking);
    expect(text).toContain('this rule holds for every shape');
    expect(text).not.toContain('slot:shape.exceptions.no-secret-in-unit');
  });

  it('never shows the secret that it speaks of', () => {
    expect(textOf(leaking)).not.toContain(leaked);
    expect(textOf(named)).toContain('HF_TOKEN');
    expect(textOf(named)).not.toContain('letmein');
  });

  it('says of idle exceptions why they are', () => {
    const text = textOf(excepted(planned('glm-w4a16'), { 'expert-prefetch': 'x', 'words-survive': 'y' }));
    expect(text).toContain('exception expert-prefetch: without need');
    expect(text).toContain('exception words-survive: without effect');
  });

  it('is a line where a line is asked for', () => {
    expect(verdictText(reviewOf(fp8))).toMatch(/^refused by glm-kv-cache-fp8; warned by /);
    expect(verdictText({ violations: [], idleExceptions: [] })).toBe('no rule is broken');
    expect(verdictText({ violations: [], idleExceptions: ['a', 'b'] })).toBe('idle exceptions a, b');
  });
});

describe('the rule ssh-host-key', () => {
  it.each([undefined, '', ' ', 'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ', 'ssh-ed25519', 'ssh-ed25519 AAAA'])(
    'fires with %j',
    (key) => {
      expect(sshHostKey.examine({ host: '192.0.2.7', hostKey: key })).toContain('192.0.2.7');
    },
  );

  it.each([hostKey, `${hostKey} root@dankserver`])('is silent with %j', (key) => {
    expect(sshHostKey.examine({ host: '192.0.2.7', hostKey: key })).toBeUndefined();
  });
});
