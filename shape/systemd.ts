/** Words that systemd takes as they are, wherever they stand: no quote, backslash, `#`, `;`, `%` or `$`. */
const bareWord = /^[A-Za-z0-9_@+=:,./-]+$/;

/** Controls, and the noncharacters, for which systemd 257 refuses the whole file as not being UTF-8. */
const unprintable = /[\p{Cc}\p{Noncharacter_Code_Point}]/gu;

/**
 * One word of an Exec line, so that the program gets exactly these bytes. systemd first reads quotes and
 * backslashes, then expands `%` specifiers, and at the start `$` variables.
 *
 * @throws RangeError for NUL, newlines and ill-formed text, which no unit file can hold
 */
export function encodeWord(word: string): string {
  refuseUnencodable(word);
  if (bareWord.test(word)) return word;
  const literal = word.replaceAll('%', '%%').replaceAll('$', '$$$$').replaceAll('\\', '\\\\');
  const quote = literal.includes('"') && !literal.includes("'") ? "'" : '"';
  const escaped = literal.replaceAll(unprintable, escapeBytes).replaceAll(quote, `\\${quote}`);
  return `${quote}${escaped}${quote}`;
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

function refuseUnencodable(text: string): void {
  if (text.isWellFormed() && !/[\0\n\r]/.test(text)) return;
  throw new RangeError(`${JSON.stringify(text)} holds NUL, a newline or half a character`);
}

function escapeBytes(character: string): string {
  return [...Buffer.from(character)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
}

/** The directives of a unit that have an effect, one a line, however they are laid out and commented. */
export function effectiveDirectives(unit: string): readonly string[] {
  return unit
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^[#;]/.test(line))
    .join('\n')
    .replaceAll(/\s*\\\n/g, ' ')
    .split('\n')
    .filter((line) => !/^(?:Description|Documentation)=/.test(line));
}
