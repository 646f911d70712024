import type { Measured } from './measured.ts';
import type { Release } from './release.ts';
import type { Verdict } from './rules/rule.ts';
import { isUnconditional, type RuleId } from './rules/rule-ids.ts';
import { rules } from './rules/rules.ts';

/** A rule that a release breaks. */
export interface Violation {
  readonly rule: Verdict<RuleId>;
  /** What was found. */
  readonly found: string;
  /** Why the shape is excepted; undefined: it is not. */
  readonly exception: string | undefined;
}

export interface Review {
  readonly violations: readonly Violation[];
  /** Ids of exceptions that except from nothing: the rule is not broken, or holds for every shape. */
  readonly idleExceptions: readonly string[];
}

/** Judges what the engine would get, by all that is known without starting it. */
export function reviewOf(release: Release, measured?: Measured): Review {
  const exceptions = release.review?.exceptions ?? {};
  const reasonFor = (id: RuleId): string | undefined =>
    isUnconditional(id) || !saysSomething(exceptions[id]) ? undefined : exceptions[id];
  const violations = rules.flatMap((rule): Violation[] => {
    const found = rule.examine({ release, measured });
    if (found === undefined) return [];
    return [{ rule, found, exception: reasonFor(rule.id) }];
  });
  const broken: readonly string[] = violations.map(({ rule }) => rule.id);
  return {
    violations,
    idleExceptions: Object.keys(exceptions).filter((id) => isUnconditional(id) || !broken.includes(id)),
  };
}

/** A reason of blanks, or of signs that nobody sees, is none. */
function saysSomething(reason = ''): boolean {
  return /[\p{L}\p{N}]/u.test(reason.replaceAll(/\p{Default_Ignorable_Code_Point}/gu, ''));
}

/** The violations for which nothing may be touched. */
export function refusalsIn({ violations }: Review): readonly Violation[] {
  return violations.filter(({ rule, exception }) => rule.severity === 'refuse' && exception === undefined);
}

/** Whether the unit may be shown: one with a secret in plain text would carry it into terminals and logs. */
export function mayBeShown({ violations }: Review): boolean {
  return !violations.some(
    ({ rule, exception }) => exception === undefined && rule.id.startsWith('no-secret-'),
  );
}

/** Stands where the unit would. */
export const unitNotShown = 'the unit is not shown: it holds a secret in plain text, see the rules';
