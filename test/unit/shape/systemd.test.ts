import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeWords,
  effectiveDirectives,
  encodeSize,
  encodeText,
  encodeWord,
} from '../../../shape/systemd.ts';
import { hostileWords, wordArbitrary } from '../../fixtures/hostile-words.ts';
import { systemdWords } from '../../fixtures/systemd-reader.ts';

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
    ['a noncharacter, with which systemctl show fails', 'a\uffff'],
    ['a noncharacter of another plane', '\u{10fffe}'],
  ])('is refused with %s', (_what, word) => {
    expect(() => encodeWord(word)).toThrow(RangeError);
  });
});

describe('the words behind a line', () => {
  it('are those that were encoded, whatever they are', () => {
    fc.assert(
      fc.property(fc.array(wordArbitrary), (words) => {
        expect(decodeWords(words.map(encodeWord).join('  \t'))).toEqual(words);
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    [`a"b c"d`, ['ab cd']],
    [`'{"a":1}' --f='{"a":1}'`, ['{"a":1}', '--f={"a":1}']],
    [`--f={"a":1}`, ['--f={a:1}']],
    [`"\\x61\\xc3\\xa4" \\s \\t`, ['aä', ' ', '\t']],
    [`a$b a$ %%`, ['a$b', 'a$', '%']],
    [`"" ''`, ['', '']],
    [`";" a;b`, [';', 'a;b']],
    ['', []],
  ])('are those that systemd makes of %j', (line, words) => {
    expect(systemdWords(line)).toEqual(words);
    expect(decodeWords(line)).toEqual(words);
  });

  it.each([
    ['a specifier', 'a%nb'],
    ['a percent sign at the end', '100%'],
    ['a variable', '$HOME'],
    ['a variable without a name', 'a $ b'],
    ['a variable in braces', `a\${HOME}b`],
    ['an open quote', `'a`],
    ['an open double quote', `a "b`],
    ['a second command', 'a ; b'],
    ['an escape that systemd does not know', `'\\d'`],
    ['a backslash at the end', 'a\\'],
  ])('are not read where the line has %s', (_what, line) => {
    expect(() => decodeWords(line)).toThrow(RangeError);
  });

  it('hold what systemd fills in where that is known', () => {
    const line = `a-\${ID}.log $\${ID}`;
    expect(decodeWords(line, { ID: '7' })).toEqual(['a-7.log', `\${ID}`]);
  });
});

describe('a size', () => {
  it.each([
    ['infinity', 'infinity'],
    ['0', '0B'],
    ['512', '512B'],
    ['1024', '1K'],
    ['8388608', '8M'],
    ['8388609', '8388609B'],
    ['68719476736', '64G'],
    ['1099511627776', '1T'],
  ])('of %s is written with its unit, %s', (bytes, size) => {
    expect(encodeSize(bytes)).toBe(size);
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
