import { type Review, refusalsIn, type Violation } from './review.ts';
import { isUnconditional } from './rules/rule-ids.ts';
import { withoutSecrets } from './secret-shapes.ts';

/** The review as a reviewer reads it, a few lines per broken rule; empty where none is. */
export function reviewText({ violations, idleExceptions }: Review): readonly string[] {
  return [...violations.map(violationText), ...idleExceptions.map(idleText)];
}

/** The review in a line, e.g. `refused by glm-kv-cache-fp8; warned by nccl-protocol`. */
export function verdictText(review: Review): string {
  const { violations, idleExceptions } = review;
  const excepted = violations.filter(({ exception }) => exception !== undefined);
  const warnings = violations.filter(
    ({ rule, exception }) => rule.severity === 'warn' && exception === undefined,
  );
  const parts: readonly (readonly [what: string, ids: readonly string[]])[] = [
    ['refused by', idsOf(refusalsIn(review))],
    ['warned by', idsOf(warnings)],
    ['excepted from', idsOf(excepted)],
    ['idle exceptions', idleExceptions],
  ];
  const said = parts.filter(([, ids]) => ids.length > 0).map(([what, ids]) => `${what} ${ids.join(', ')}`);
  return said.length === 0 ? 'no rule is broken' : said.join('; ');
}

function idsOf(violations: readonly Violation[]): readonly string[] {
  return violations.map(({ rule }) => rule.id);
}

function violationText({ rule, found, exception }: Violation): string {
  const verdict = exception === undefined ? rule.severity : 'excepted';
  return [
    `${verdict} ${rule.id}: ${withoutSecrets(found)}`,
    `    why: ${rule.reason}`,
    `    evidence: ${rule.evidence}`,
    exception === undefined ? `    next: ${nextStep(rule)}` : `    excepted because: ${exception}`,
  ].join('\n');
}

function nextStep({ id, remedy }: Violation['rule']): string {
  return isUnconditional(id)
    ? `${remedy} (this rule holds for every shape)`
    : `${remedy}; or say in slot:shape.exceptions.${id} why it does not hold here`;
}

function idleText(id: string): string {
  return isUnconditional(id)
    ? `exception ${id}: without effect, this rule holds for every shape; take it out`
    : `exception ${id}: without need, the rule is not broken; take it out`;
}
