import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { disputeOver } from '../../../shape/plain-scalars.ts';

describe('words that YAML readers type differently', () => {
  it.each([
    ...['yes', 'No', 'ON', 'off', 'y', 'N', 'True', 'NULL'],
    ...[
      '0600',
      '08',
      '-07',
      '0x1F',
      '0o17',
      '0b11',
      '1_000',
      '1_000.5',
      '9e_4',
      '+_0',
      '._5e1',
      '+1',
      '.5',
      '1.',
      '1e3',
      '12345e6',
      '1.5e-3',
    ],
    ...['12:30', '0000:03:00.0', '.inf', '-.Inf', '.nan', '2026-01-01', '2026-01-01T00:00:00Z', '=', '<<'],
    ...['9007199254740993', '1234567890123456', '0.12345678901234567'],
  ])('%s is disputed', (word) => expect(disputeOver(word)).toBeTypeOf('string'));

  it.each([
    ...['true', 'false', 'null', '~', '0', '7770', '-1', '0.98', '1.20', '131072'],
    ...[
      'auto',
      'glm47',
      'da4029666',
      '20 min',
      'sha256:00',
      'infinity',
      'docker.io/a/b',
      '1.2.3',
      'yesterday',
    ],
  ])('%s is not', (word) => expect(disputeOver(word)).toBeUndefined());

  it('are all that YAML 1.1 and 1.2 disagree on', () => {
    const word = fc.string({
      unit: fc.constantFrom(...'01789_.:+-eExobnyTtrufalsi'),
      minLength: 1,
      maxLength: 12,
    });
    fc.assert(
      fc.property(word, (source) => {
        fc.pre(!/^[-:?]|:$|^---|^\.\.\./.test(source) && disputeOver(source) === undefined);
        const old: unknown = parse(source, { version: '1.1' });
        // This reader alone takes `e0` for a number, and then has none.
        fc.pre(!Number.isNaN(old));
        expect(old).toEqual(parse(source, { version: '1.2' }));
      }),
      { numRuns: 20_000 },
    );
  });
});
