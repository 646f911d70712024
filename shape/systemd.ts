import { isOneLine } from './text.ts';

/** Words that systemd takes as they are, wherever they stand: no quote, backslash, `#`, `;`, `%` or `$`. */
const bareWord = /^[A-Za-z0-9_@+=:,./-]+$/;

const control = /\p{Cc}/gu;

/**
 * One word of an Exec line, so that the program gets exactly these bytes. systemd first reads quotes and
 * backslashes, then expands `%` specifiers, and at the start `$` variables.
 *
 * @throws RangeError for NUL, newlines, noncharacters and ill-formed text, which no unit file can hold
 */
export function encodeWord(word: string): string {
  refuseUnencodable(word);
  if (bareWord.test(word)) return word;
  const literal = word.replaceAll('%', '%%').replaceAll('$', '$$$$').replaceAll('\\', '\\\\');
  const quote = literal.includes('"') && !literal.includes("'") ? "'" : '"';
  const escaped = literal.replaceAll(control, escapeBytes).replaceAll(quote, `\\${quote}`);
  return `${quote}${escaped}${quote}`;
}

/** What each letter after a backslash stands for. */
const escapes: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  s: ' ',
  t: '\t',
  v: '\v',
  '\\': '\\',
  '"': '"',
  "'": "'",
};

/** What means something of its own in a line: escapes, blanks, quotes; and other text. */
const wordParts = /(?:\\x[0-9A-Fa-f]{2})+|\\.?|\s+|["']|[^\\\s"']+/gsu;

/**
 * The words that a program gets of an Exec line, without its prefix characters: the inverse of `encodeWord`.
 * `variables` are those that systemd may fill in.
 *
 * @throws RangeError where systemd would refuse the line, or fill in what is not in it
 */
export function decodeWords(
  line: string,
  variables: Readonly<Record<string, string>> = {},
): readonly string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  const end = (): void => {
    if (word !== undefined) words.push(filledIn(word, variables));
    word = undefined;
  };
  for (const [part = ''] of line.matchAll(wordParts)) {
    if (part.startsWith('\\')) word = (word ?? '') + unescaped(part);
    else if (part === quote) quote = undefined;
    else if (quote !== undefined) word += part;
    else if (/^\s/.test(part)) end();
    else if (part === '"' || part === "'") {
      quote = part;
      word ??= '';
    } else {
      if (part === ';' && word === undefined) throw new RangeError('a bare ; begins a second command line');
      word = (word ?? '') + part;
    }
  }
  if (quote !== undefined) throw new RangeError(`a quote is not closed: ${line}`);
  end();
  return words;
}

function unescaped(written: string): string {
  if (written.startsWith('\\x')) return Buffer.from(written.replaceAll('\\x', ''), 'hex').toString();
  const meant = escapes[written.slice(1)];
  if (meant === undefined) throw new RangeError(`${written} is no escape that systemd knows`);
  return meant;
}

function filledIn(word: string, variables: Readonly<Record<string, string>>): string {
  const plain = word.replaceAll(/%(.?)/gsu, (specifier, letter: string) => {
    if (letter !== '%') throw new RangeError(`systemd would replace ${specifier} in ${word}`);
    return '%';
  });
  // A word that is $ alone is a variable without a name: it is gone.
  if (/^\$(?:$|[^${])/.test(plain)) throw new RangeError(`systemd would replace ${plain}`);
  return plain.replaceAll(/\$\$|\$\{([^}]*)\}/g, (found, name: string | undefined) => {
    if (name === undefined) return '$';
    const value = variables[name];
    if (value === undefined) throw new RangeError(`systemd would replace ${found} in ${word}`);
    return value;
  });
}

/**
 * The value of a directive that is plain text, such as `Description=`.
 *
 * @throws RangeError for text that cannot stand in one line, or would lose a blank or begin a continuation
 */
export function encodeText(text: string): string {
  refuseUnencodable(text);
  if (text.trim() !== text || text.endsWith('\\')) {
    throw new RangeError(`${JSON.stringify(text)} begins or ends with what systemd removes`);
  }
  return text.replaceAll('%', '%%');
}

/** A limit in bytes, or `infinity`, in the largest of systemd's units that holds it whole. */
export function encodeSize(limit: string): string {
  if (limit === 'infinity') return limit;
  const bytes = Number(limit);
  const [unit, size] = sizes.find((known) => bytes >= known[1] && bytes % known[1] === 0) ?? ['B', 1];
  return `${bytes / size}${unit}`;
}

/** A limit that {@link encodeSize} wrote; undefined: it is neither `infinity` nor a size with its unit. */
export function decodeSize(limit: string): number | 'infinity' | undefined {
  if (limit === 'infinity') return limit;
  const [, amount, unit] = /^(\d+)([A-Z])$/.exec(limit) ?? [];
  const size = sizes.find(([name]) => name === unit)?.[1];
  return size === undefined ? undefined : Number(amount) * size;
}

const sizes = [
  ['T', 2 ** 40],
  ['G', 2 ** 30],
  ['M', 2 ** 20],
  ['K', 2 ** 10],
  ['B', 1],
] as const;

function refuseUnencodable(text: string): void {
  if (isOneLine(text)) return;
  throw new RangeError(`${JSON.stringify(text)} holds NUL, a newline, a noncharacter or half a character`);
}

function escapeBytes(character: string): string {
  return [...Buffer.from(character)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
}

/** The directives of a unit that have an effect, one a line, however they are laid out and commented. */
export function effectiveDirectives(unit: string): readonly string[] {
  return logicalLines(unit).filter((line) => !/^(?:Description|Documentation)=/.test(line));
}

/** The lines of a unit as systemd reads them: without comments, and each with what continues it. */
export function logicalLines(unit: string): readonly string[] {
  return unit
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^[#;]/.test(line))
    .join('\n')
    .replaceAll(/\s*\\\n/g, ' ')
    .split('\n');
}
