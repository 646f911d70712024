import { shorten } from '../../shape/problems.ts';

/** Names of one finding that are told one by one. */
const mostNames = 4;

/** A name that somebody else wrote, as a terminal may show it. */
export function shown(name: string): string {
  return /^[\x21-\x7e]+$/.test(name) ? shorten(name) : quoted(name);
}

/** A text that somebody else wrote, as a terminal may show it. */
export function quoted(text: string): string {
  return shorten(JSON.stringify(text).replaceAll(/[^\x20-\x7e]/g, '?'));
}

/** `a, b, c, d and 31 more`. */
export function listed(names: readonly string[]): string {
  const first = names.slice(0, mostNames).map(shown).join(', ');
  return names.length > mostNames ? `${first} and ${names.length - mostNames} more` : first;
}

/** `1 byte`, `4,096 bytes`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')} ${count === 1 ? one : many}`;
}
