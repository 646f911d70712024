const units = [
  ['EiB', 2 ** 60],
  ['PiB', 2 ** 50],
  ['TiB', 2 ** 40],
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
] as const;

/** With two decimals in the largest unit that it fills: `1.74 GiB`, `6.23 MiB`, `512 B`. */
export function sizeText(bytes: number): string {
  const [unit, size] = units.find(([, least]) => Math.abs(bytes) >= least) ?? ['B', 1];
  return size === 1 ? `${bytes} B` : `${(bytes / size).toFixed(2)} ${unit}`;
}

/** `131,072`. */
export function countText(count: number): string {
  return String(Math.round(count)).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
}

/** Two sizes that are compared, to the byte: rounded they may look alike. */
export function comparisonText(greater: number, less: number): string {
  return `${sizeText(greater)} > ${sizeText(less)}, ${countText(greater)} B > ${countText(less)} B`;
}
