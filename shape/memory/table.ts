import { countText, sizeText } from './amounts.ts';
import type { Figure, MemoryPlan, RecordedAmount } from './figure.ts';

/**
 * The plan as a reviewer reads it: a line per figure, for each rank and for the host, with its source and what it is
 * computed from. Empty where there is nothing to be said.
 */
export function memoryTable({ figures }: MemoryPlan): readonly string[] {
  if (figures.length === 0) return [];
  const rows = [...Map.groupBy(figures, ({ id }) => id).values()].map(rowOf);
  const header = ['memory', 'per rank', 'host', 'source', 'by'];
  const widths = header.map((title, column) =>
    Math.max(...[header, ...rows].map((row) => (row[column] ?? title).length)),
  );
  return [header, ...rows].map((row) =>
    row
      .map((cell, column) =>
        isAmount(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  );
}

function isAmount(column: number): boolean {
  return column === 1 || column === 2;
}

/** The figures of one id: it counts for a rank, for the host, or differently for both. */
function rowOf(figures: readonly Figure[]): readonly string[] {
  const cell = (scope: Figure['scope']): string => {
    const figure = figures.find((candidate) => candidate.scope === scope);
    return figure === undefined ? '' : amountText(figure.amount, figure.unit);
  };
  const [first] = figures;
  const notes = [
    first?.formula ?? '',
    ...(first?.doubt === undefined ? [] : [first.doubt]),
    ...(first?.recorded ?? []).map((on) => recordedText(on, first?.unit ?? 'bytes')),
  ];
  return [first?.label ?? '', cell('rank'), cell('host'), first?.source ?? '', notes.join('; ')];
}

function amountText(amount: Figure['amount'], unit: Figure['unit']): string {
  if (typeof amount === 'string') return amount;
  return unit === 'bytes' ? sizeText(amount) : countText(amount);
}

/** `recorded 1.76 GiB, 102.24 MiB more`; `recorded 13.50 GiB − 10.30 GiB = 3.20 GiB, 461.13 MiB more`. */
function recordedText({ amount, residual, differenceOf }: RecordedAmount, unit: Figure['unit']): string {
  const terms = differenceOf?.map((term) => amountText(term, unit)).join(' − ');
  const recorded = `recorded ${terms === undefined ? '' : `${terms} = `}${amountText(amount, unit)}`;
  // What rounds to the same closes.
  if (residual === undefined || amountText(amount - residual, unit) === amountText(amount, unit))
    return recorded;
  return `${recorded}, ${amountText(Math.abs(residual), unit)} ${residual > 0 ? 'more' : 'less'}`;
}
