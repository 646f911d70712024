import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { disputeOverJson, plainJson, plainNumber } from '../../../shape/engines/plain-json.ts';

describe('JSON without exponents', () => {
  it('is read as what was written', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const wanted = JSON.parse(JSON.stringify(value));
        expect(JSON.parse(plainJson(value))).toEqual(wanted);
      }),
    );
  });

  it('is what JavaScript writes wherever that has none', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.maxSafeInteger(), fc.boolean())),
        (value) => {
          expect(plainJson(value)).toBe(JSON.stringify(value));
        },
      ),
    );
  });

  it.each([
    [1e-7, '0.0000001'],
    [-1.25e-10, '-0.000000000125'],
    [5e-324, `0.${'0'.repeat(323)}5`],
    [0.98, '0.98'],
    [-4, '-4'],
  ])('has %d as %s', (number, text) => {
    expect(plainNumber(number)).toBe(text);
  });
});

describe('a dispute over JSON', () => {
  it('is about no number and no key that is within a string', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(disputeOverJson(JSON.stringify({ a: text, b: [text, text] }))).toBeUndefined();
      }),
    );
  });

  it('is about every key that is there twice', () => {
    fc.assert(
      fc.property(fc.string(), fc.jsonValue(), (key, value) => {
        const member = `${JSON.stringify(key)}:${plainJson(value)}`;
        expect(disputeOverJson(`[{"x":{${member} , ${member}}}]`)).toBeDefined();
      }),
    );
  });

  it('is left to the parser where it is none', () => {
    for (const text of ['', '{', 'x', 'null', '{"a":1e}']) expect(disputeOverJson(text)).toBeUndefined();
  });
});
