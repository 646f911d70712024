import type { Review, Violation } from './review.ts';

/** The review as a reviewer reads it, a few lines per broken rule; empty where none is. */
export function reviewText({ violations, idleExceptions }: Review): readonly string[] {
  return [
    ...violations.map(violationText),
    ...idleExceptions.map((id) => `exception ${id}: without need, the rule is not broken; take it out`),
  ];
}

function violationText({ rule, found, exception }: Violation): string {
  const verdict = exception === undefined ? rule.severity : 'excepted';
  return [
    `${verdict} ${rule.id}: ${found}`,
    `    why: ${rule.reason} (${rule.evidence})`,
    ...(exception === undefined ? [] : [`    excepted because: ${exception}`]),
  ].join('\n');
}
