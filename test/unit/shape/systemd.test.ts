import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { effectiveDirectives, encodeText, encodeWord } from '../../../shape/systemd.ts';
import { hostileWords, wordArbitrary } from '../../fixtures/hostile-words.ts';

describe('a word of an Exec line', () => {
  it.each(hostileWords)('comes out of systemd as it was configured: %j', (word) => {
    expect(systemdWords(encodeWord(word))).toEqual([word]);
  });

  it('comes out of systemd as it was configured, whatever it is', () => {
    fc.assert(
      fc.property(wordArbitrary, (word) => {
        expect(systemdWords(encodeWord(word))).toEqual([word]);
      }),
      { numRuns: 2000 },
    );
  });

  it('stays one word beside others, also where a line begins with it', () => {
    fc.assert(
      fc.property(fc.array(wordArbitrary), (words) => {
        const line = words.map(encodeWord).join(' \\\n    ');
        expect(systemdWords(line)).toEqual(words);
      }),
    );
  });

  it.each([
    ['a newline', 'a\nExecStartPre=/usr/bin/touch /x'],
    ['a carriage return', 'a\rb'],
    ['NUL', 'a\0b'],
    ['half a character', 'a\ud800'],
  ])('is refused with %s', (_what, word) => {
    expect(() => encodeWord(word)).toThrow(RangeError);
  });
});

describe('a text directive', () => {
  it('keeps its percent signs', () => {
    expect(encodeText('50%h of 100%')).toBe('50%%h of 100%%');
  });

  it.each([' leading', 'trailing ', 'continued\\', 'two\nlines', 'nul\0'])('refuses %j', (text) => {
    expect(() => encodeText(text)).toThrow(RangeError);
  });
});

describe('effective directives', () => {
  const plain = '[Service]\nExecStart=/bin/a b c\nRestart=always\n';

  it.each([
    ['comments', '[Service]\n# why\nExecStart=/bin/a b c\n; why\nRestart=always\n'],
    ['layout', '\n[Service]\nExecStart=/bin/a \\\n    b \\\n    c\n\nRestart=always\n\n'],
    ['description', '[Service]\nDescription=x\nDocumentation=y\nExecStart=/bin/a b c\nRestart=always\n'],
  ])('do not depend on %s', (_what, unit) => {
    expect(effectiveDirectives(unit)).toEqual(effectiveDirectives(plain));
  });

  it.each([
    ['a word', '[Service]\nExecStart=/bin/a b d\nRestart=always\n'],
    ['the order', '[Service]\nRestart=always\nExecStart=/bin/a b c\n'],
    ['a directive', '[Service]\nExecStart=/bin/a b c\n'],
  ])('differ with %s', (_what, unit) => {
    expect(effectiveDirectives(unit)).not.toEqual(effectiveDirectives(plain));
  });
});

/**
 * The words that systemd passes to the program: a reading of systemd.syntax(7), "Quoting" and
 * systemd.service(5), "Command lines", made without a look at the encoder.
 */
function systemdWords(line: string): string[] {
  const lines = line.split('\n');
  const joined = lines
    .filter((part, index) => index === 0 || !/^\s*[#;]/.test(part))
    .map((part) => (part.endsWith('\\') ? `${part.slice(0, -1)} ` : part))
    .join('');
  const words: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (let index = 0; index < joined.length; index++) {
    const character = joined[index] as string;
    if (character === '\\') {
      const { text, length } = escapeAt(joined, index);
      word = (word ?? '') + text;
      index += length - 1;
    } else if (quote !== undefined) {
      if (character === quote) quote = undefined;
      else word += character;
    } else if (character === '"' || character === "'") {
      quote = character;
      word ??= '';
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      if (character === ';' && word === undefined) throw new Error('a second command line');
      word = (word ?? '') + character;
    }
  }
  if (quote !== undefined) throw new Error('unbalanced quotes');
  if (word !== undefined) words.push(word);
  return words.map(withoutSpecifiers).flatMap(withoutVariables);
}

function escapeAt(text: string, index: number): { text: string; length: number } {
  const simple: Record<string, string> = { '\\': '\\', '"': '"', "'": "'", n: '\n', t: '\t', s: ' ' };
  const [bytes = ''] = /^(?:\\x[0-9a-f]{2})*/.exec(text.slice(index)) ?? [];
  if (bytes !== '') {
    return { text: Buffer.from(bytes.replaceAll('\\x', ''), 'hex').toString(), length: bytes.length };
  }
  const next = text[index + 1] ?? '';
  const meant = simple[next];
  if (meant === undefined) throw new Error(`unknown escape \\${next}`);
  return { text: meant, length: 2 };
}

function withoutSpecifiers(word: string): string {
  return word.replaceAll(/%(.?)/gs, (_all, next: string) => {
    if (next !== '%') throw new Error(`specifier %${next}`);
    return '%';
  });
}

function withoutVariables(word: string): string[] {
  if (/^\$[^${]/.test(word)) return [];
  return [word.replaceAll(/\$\$|\$\{[^}]*\}/g, (found) => (found === '$$' ? '$' : ''))];
}
