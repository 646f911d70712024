import * as z from 'zod';
import { forms } from './forms.ts';

const bytesPerUnit: Readonly<Record<string, number>> = {
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

const secondsPerUnit: Readonly<Record<string, number>> = { ms: 0.001, s: 1, min: 60, h: 3600 };

/** An amount of memory or disk: always written with its unit, e.g. `64 MiB`, `1.5 GiB`, `512 B`. */
export class ByteSize {
  readonly bytes: number;

  private constructor(bytes: number) {
    this.bytes = bytes;
  }

  /**
   * Undefined when the text is not wholly a number with one of the units B, KiB, MiB, GiB, TiB. A part of a unit
   * becomes the nearest whole number of bytes, as sizes on record are rounded (`6.234 MiB`); half a byte is none.
   */
  static parse(text: string): ByteSize | undefined {
    const exact = amount(text, bytesPerUnit);
    if (exact === undefined || (/\d ?B$/.test(text) && !Number.isInteger(exact))) return undefined;
    const bytes = Math.round(exact);
    return Number.isSafeInteger(bytes) ? new ByteSize(bytes) : undefined;
  }
}

/** Timers of Node run at once where they are asked to wait for more than 24.8 days. */
const mostHours = 7 * 24;

/** A span of time: always written with its unit, e.g. `20 min`, `1.5 s`, `250 ms`, `2 h`. */
export class Duration {
  readonly seconds: number;

  private constructor(seconds: number) {
    this.seconds = seconds;
  }

  /** Undefined when the text is not wholly a number with one of the units ms, s, min, h, or over 168 h. */
  static parse(text: string): Duration | undefined {
    const seconds = amount(text, secondsPerUnit);
    return seconds === undefined || seconds > mostHours * 3600 ? undefined : new Duration(seconds);
  }
}

function amount(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const [, digits, unit] = /^(\d{1,15}(?:\.\d{1,9})?) ?([A-Za-z]+)$/.exec(text) ?? [];
  if (digits === undefined || unit === undefined || !Object.hasOwn(units, unit)) return undefined;
  return Number(digits) * (units[unit] as number);
}

/** Configuration text such as `64 MiB`; a bare number is refused, because nobody can see its unit. */
export const byteSizeSchema = quantity('size', (text) => ByteSize.parse(text), Object.keys(bytesPerUnit), [
  '64 MiB',
  '6.234 MiB',
]);

/** The same, where nothing at all would be no amount. */
export const positiveByteSizeSchema = byteSizeSchema.superRefine(({ bytes }, context) => {
  if (bytes > 0) return;
  const params = { remedy: "give it a size, e.g. '64 MiB', or leave it out" };
  context.addIssue({ code: 'custom', message: 'must be more than 0 B', params });
});

/** Configuration text such as `20 min`; a bare number is refused, because nobody can see its unit. */
export const durationSchema = quantity(
  'duration',
  (text) => Duration.parse(text),
  Object.keys(secondsPerUnit),
  ['20 min', '1.5 s'],
  `, at most ${mostHours} h`,
);

/** The same, where no time at all would be none to work in. */
export const positiveDurationSchema = durationSchema.superRefine(({ seconds }, context) => {
  if (seconds > 0) return;
  const params = { remedy: "give it time, e.g. '1 min'" };
  context.addIssue({ code: 'custom', message: 'must be more than 0 s', params });
});

function quantity<T>(
  name: string,
  parse: (text: string) => T | undefined,
  units: readonly string[],
  examples: readonly [string, ...string[]],
  most = '',
) {
  const limit = `must be text: a number and one of the units ${units.join(', ')}${most}`;
  return z
    .string(limit)
    .register(forms, {
      name,
      limit,
      examples,
      remedy: `write it with its unit, e.g. '${examples[0]}'`,
      pattern: `^\\d{1,15}(?:\\.\\d{1,9})? ?(?:${units.join('|')})$`,
    })
    .transform((text, context): T => {
      const parsed = parse(text);
      if (parsed !== undefined) return parsed;
      context.addIssue({ code: 'custom', message: limit });
      return z.NEVER;
    });
}
