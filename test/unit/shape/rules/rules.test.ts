import { describe, expect, it } from 'vitest';
import { ruleIds } from '../../../../shape/rules/rule-ids.ts';
import { rules } from '../../../../shape/rules/rules.ts';
import { allCases } from './all-cases.ts';

it('every rule is known by one id, and no id is without its rule', () => {
  expect(rules.map(({ id }) => id).sort()).toEqual([...ruleIds].sort());
});

describe.each(rules)('the rule $id', (rule) => {
  const own = allCases.flatMap((table) => table[rule.id] ?? []);
  const fires = own.flatMap((table) => table.fires);
  const silent = own.flatMap((table) => table.silent);

  it('has cases in which it fires and cases in which it is silent', () => {
    expect({ fires: fires.length > 0, silent: silent.length > 0 }).toEqual({ fires: true, silent: true });
  });

  it('says what a reviewer needs: why, since when known, and what to do', () => {
    for (const text of [rule.reason, rule.evidence, rule.remedy]) expect(text).toMatch(/^\S.{10,}[^.\s]$/s);
  });

  it.each(fires)('fires with $what', ({ release, measured, found }) => {
    const finding = rule.examine({ release, measured });
    expect(finding).toBeDefined();
    if (found !== undefined) expect(finding).toContain(found);
  });

  it.each(silent)('is silent with $what', ({ release, measured }) => {
    expect(rule.examine({ release, measured })).toBeUndefined();
  });
});
