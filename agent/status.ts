import type { Inspection } from '../shape/inspection.ts';
import { shortId } from '../shape/release.ts';

/** The inspection for people: what serves, whether it is healthy, and what happened last. */
export function statusText(inspection: Inspection): string {
  const { occupant, transaction } = inspection;
  const lines = [`${inspection.service} on ${inspection.hostname}, epoch ${inspection.epoch}`];
  if (occupant === null) {
    lines.push('  the slot is empty');
  } else {
    lines.push(
      `  ${occupant.shape} is ${occupant.state}, release ${shortId(occupant.releaseId)}, since ${occupant.since}`,
      `  serves ${occupant.servedNames.join(', ')} on port ${occupant.port}`,
      ...occupant.faults.map((fault) => `  fault: ${fault}`),
    );
  }
  if (transaction !== null && transaction.outcome === undefined) {
    const what = `${transaction.kind} to ${transaction.shape} of ${transaction.by}, phase ${transaction.phase}`;
    lines.push(
      `  ${transaction.running ? 'under way' : 'interrupted'}: ${what}, since ${transaction.startedAt}`,
    );
  } else if (transaction?.outcome !== undefined) {
    const { kind, shape, endedAt, stage, message } = transaction.outcome;
    const where = stage === undefined ? '' : ` at ${stage}`;
    lines.push(`  last: ${shape} ${kind}${where}, ${endedAt}: ${message.replaceAll('\n', '\n    ')}`);
  }
  lines.push(...inspection.findings.map(({ severity, message }) => `  ${severity}: ${message}`));
  return `${lines.join('\n')}\n`;
}
