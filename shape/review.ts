import type { Measured } from './measured.ts';
import type { Release } from './release.ts';
import type { Rule } from './rules/rule.ts';
import { rules } from './rules/rules.ts';

/** A rule that a release breaks. */
export interface Violation {
  readonly rule: Pick<Rule, 'id' | 'severity' | 'reason' | 'evidence'>;
  /** What was found. */
  readonly found: string;
  /** Why the shape is excepted; undefined: it is not. */
  readonly exception: string | undefined;
}

export interface Review {
  readonly violations: readonly Violation[];
  /** Ids of rules that the shape is excepted from without need. */
  readonly idleExceptions: readonly string[];
}

/** Judges what the engine would get, by all that is known without starting it. */
export function reviewOf(release: Release, measured?: Measured): Review {
  const exceptions = release.review?.exceptions ?? {};
  const violations = rules.flatMap((rule): Violation[] => {
    const found = rule.examine({ release, measured });
    return found === undefined ? [] : [{ rule, found, exception: exceptions[rule.id] }];
  });
  const broken = new Set<string>(violations.map(({ rule }) => rule.id));
  return { violations, idleExceptions: Object.keys(exceptions).filter((id) => !broken.has(id)) };
}

/** The violations for which nothing may be touched. */
export function refusalsIn({ violations }: Review): readonly Violation[] {
  return violations.filter(({ rule, exception }) => rule.severity === 'refuse' && exception === undefined);
}
