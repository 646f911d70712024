import { jsonOrUndefined } from '../json.ts';
import { isTooDeep, mostLevels } from '../strict-yaml.ts';

/** What is wrong with JSON that somebody wrote by hand, and what to do. */
export interface JsonFault {
  readonly limit: string;
  readonly remedy: string;
}

/** Strings and numbers as a whole, so that nothing within a string is taken for structure. */
const token = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[{}[\],:]/g;

/**
 * What readers of this JSON would not agree on: a number that JavaScript cannot hold, one with an exponent, a key
 * that is there twice. Undefined: nothing, or it is not JSON.
 */
export function disputeOverJson(text: string): JsonFault | undefined {
  const parsed = jsonIn(text);
  if (parsed === undefined) return undefined;
  if (isTooDeep(parsed)) {
    return { limit: `must not be nested over ${mostLevels} levels`, remedy: 'flatten it' };
  }
  const objects: (Set<string> | undefined)[] = [];
  const tokens = text.match(token) ?? [];
  for (const [index, word] of tokens.entries()) {
    if (word === '{') objects.push(new Set());
    else if (word === '[') objects.push(undefined);
    else if (word === '}' || word === ']') objects.pop();
    else if (tokens[index + 1] === ':') {
      const keys = objects.at(-1);
      const key = String(JSON.parse(word));
      if (keys?.has(key)) return { limit: `must not name ${word} twice`, remedy: 'keep one of them' };
      keys?.add(key);
    } else if (/^-?\d/.test(word)) {
      const fault = disputeOverNumber(word);
      if (fault !== undefined) return fault;
    }
  }
  return undefined;
}

function disputeOverNumber(word: string): JsonFault | undefined {
  if (/e/i.test(word)) {
    return { limit: `must not hold a number with an exponent: ${word}`, remedy: 'write all of its digits' };
  }
  return isBeyondSafe(Number(word))
    ? {
        limit: `must not hold a whole number beyond ±${Number.MAX_SAFE_INTEGER}: ${word}`,
        remedy: 'write a smaller one',
      }
    : undefined;
}

/** Whether a whole number anywhere in the value may not be the one that was written. */
export function holdsUnsafeNumber(value: unknown): boolean {
  if (typeof value === 'number') return isBeyondSafe(value);
  return value !== null && typeof value === 'object' && Object.values(value).some(holdsUnsafeNumber);
}

function isBeyondSafe(value: number): boolean {
  return !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value));
}

/** JSON as `JSON.stringify` writes it, but without exponents. */
export function plainJson(value: unknown): string {
  if (typeof value === 'number') return plainNumber(value);
  if (Array.isArray(value)) return `[${value.map(plainJson).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    const members = Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)}:${plainJson(inner)}`);
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value);
}

/** `0.0000001` where JavaScript writes `1e-7`; not for whole numbers that it cannot hold. */
export function plainNumber(value: number): string {
  const [, sign = '', digits = '', decimals = ''] = /^(-?)([\d.]+)e-(\d+)$/.exec(String(value)) ?? [];
  if (digits === '') return String(value);
  return `${sign}0.${'0'.repeat(Number(decimals) - 1)}${digits.replace('.', '')}`;
}

/** Undefined where the text is not JSON, or is `null`. */
export function jsonIn(text: string): unknown {
  return jsonOrUndefined(text) ?? undefined;
}
