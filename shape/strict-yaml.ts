import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type YAMLError } from 'yaml';
import { disputeOver } from './plain-scalars.ts';
import { ConfigurationError, type Path } from './problems.ts';

/** Something in a file that its readers disagree on, or that Pulumi does not keep. */
export interface Fault {
  readonly path: Path;
  /** As written; undefined: there is nothing to show. */
  readonly source: string | undefined;
  readonly limit: string;
  readonly remedy: string;
  /** Concerns this word alone: who owns the key may mean it as it is. */
  readonly isWord: boolean;
  /** Concerns the last key of the path, not what stands there. */
  readonly isOfKey: boolean;
}

export interface StrictYaml {
  readonly content: unknown;
  readonly faults: readonly Fault[];
  /** The text of the value at this path as it is written in the file. */
  sourceAt(path: Path): string | undefined;
}

/** A stack file has about 4 KiB. */
const mostBytes = 256 * 1024;

/** The deepest key of a shape has eight levels, counted from the file; a map for the engine may add some. */
export const mostLevels = 32;

/** What Pulumi's reader refuses, or takes for the end of a line as other readers do not. */
const unreadable =
  /[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]|\r(?!\n)/u;

/** @throws ConfigurationError where the text is not YAML, or too much of it */
export function readStrictYaml(file: string, text: string): StrictYaml {
  const refuse = (limit: string, remedy: string): never => {
    throw new ConfigurationError([{ file, key: '', value: undefined, limit, remedy }]);
  };
  if (Buffer.byteLength(text) > mostBytes) refuse(`must be at most ${mostBytes / 1024} KiB`, 'shorten it');
  const found = unreadable.exec(text.replace(/^\ufeff/, ' '));
  const lines = new LineCounter();
  // Keys that are there twice are looked for below: the library compares each with all others.
  const document = parseDocument(text, { uniqueKeys: false, prettyErrors: false, lineCounter: lines });
  const placeOf = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}`;
  };
  if (found !== null) {
    refuse(
      `must not hold control characters or line ends of another kind, as at ${placeOf(found.index)}`,
      'remove it, or write it as \\u… in double quotes',
    );
  }
  if (document.errors.length > 0) {
    // What is read behind the first is read in the wrong place: it would be blamed for the first.
    const [first] = document.errors.toSorted((a, b) => a.pos[0] - b.pos[0]) as [YAMLError];
    refuse(`must be YAML: ${reasonOf(first)} at ${placeOf(first.pos[0])}`, 'correct it there');
  }
  if (document.directives?.yaml.explicit === true) {
    refuse('must not name a version of YAML: Pulumi reads the file by its own', 'remove the line %YAML');
  }
  const reader = new Reader();
  const content = reader.read(document.contents, []);
  return { content, faults: reader.faults, sourceAt: (path) => reader.sources.get(idOf(path)) };
}

/** The library's words, but for those that repeat the file's own: what is there may be a secret. */
function reasonOf({ code, message }: YAMLError): string {
  switch (code) {
    case 'UNEXPECTED_TOKEN':
      return 'unexpected text';
    case 'BAD_DQ_ESCAPE':
      return 'an unknown escape sequence';
    case 'TAG_RESOLVE_FAILED':
    case 'BAD_COLLECTION_TYPE':
      return 'a tag that does not suit its value';
    case 'BAD_DIRECTIVE':
      return 'an unknown directive';
    case 'RESOURCE_EXHAUSTION':
      return 'nested too deeply';
    default:
      return message;
  }
}

function idOf(path: Path): string {
  return JSON.stringify(path);
}

class Reader {
  readonly faults: Fault[] = [];
  readonly sources = new Map<string, string>();

  read(node: Node | unknown, path: Path): unknown {
    if (isAlias(node)) {
      const limit = 'must not be an alias: Pulumi writes its value out whenever it writes the file';
      return this.#blame(path, `*${node.source}`, limit, 'write the value out');
    }
    if (path.length > mostLevels) {
      return this.#blame(
        path.slice(0, 4),
        undefined,
        `must not be nested over ${mostLevels} levels`,
        'flatten it',
      );
    }
    if (isMap(node) || isSeq(node) || isScalar(node)) {
      if (node.tag !== undefined) {
        this.#blame(
          path,
          node.tag,
          'must not have a tag: a value is of the type that it looks like',
          'remove the tag',
        );
      }
    }
    if (isMap(node)) return this.#readMap(node.items, path);
    if (isSeq(node)) return node.items.map((item, index) => this.read(item, [...path, index]));
    if (!isScalar(node)) return null;
    if (typeof node.source === 'string') this.sources.set(idOf(path), node.source);
    if (node.type === 'PLAIN') this.#dispute(node.source ?? '', path);
    return node.value;
  }

  #readMap(items: readonly { key: unknown; value: unknown }[], path: Path): unknown {
    const map: Record<string, unknown> = {};
    for (const { key, value } of items) {
      const name = this.#nameOf(key, path);
      if (name === undefined) continue;
      const here = [...path, name];
      if (Object.hasOwn(map, name))
        this.#blame(here, undefined, 'must not be there twice', 'keep one of them');
      // `map[name] = …` would set a prototype where the name is __proto__.
      const content = this.read(value, here);
      Object.defineProperty(map, name, {
        value: content,
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
    return map;
  }

  #nameOf(key: unknown, path: Path): string | undefined {
    if (!isScalar(key)) {
      this.#blame(
        path,
        undefined,
        'must not have a list, a map or an alias as a key',
        'write the key as text',
      );
      return undefined;
    }
    const name = key.source ?? String(key.value ?? '');
    const here = [...path, name];
    if (key.tag !== undefined) this.#blame(here, key.tag, 'must not have a tag at its key', 'remove the tag');
    const isDisputed = key.type === 'PLAIN' && this.#dispute(name, here, true);
    if (typeof key.value !== 'string' && !isDisputed) {
      this.#blame(here, name, 'must have text as its key', `quote it: ${quote(name)}`);
    }
    return typeof key.value === 'string' ? key.value : name;
  }

  #dispute(source: string, path: Path, isOfKey = false): boolean {
    const limit = source === '' ? undefined : disputeOver(source);
    if (limit === undefined) return false;
    const remedy = isOfKey
      ? `quote it: ${quote(source)}`
      : `quote it: ${quote(source)}, or write true, false or a plain decimal number if that is meant`;
    this.faults.push({ path, source, limit, remedy, isWord: true, isOfKey });
    return true;
  }

  #blame(path: Path, source: string | undefined, limit: string, remedy: string): null {
    this.faults.push({ path, source, limit, remedy, isWord: false, isOfKey: false });
    return null;
  }
}

/** Whether a value is nested over {@link mostLevels}; without recursion, which it would overflow. */
export function isTooDeep(value: unknown): boolean {
  let level = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > mostLevels) return true;
    level = level.flatMap((inner) =>
      inner !== null && typeof inner === 'object' ? Object.values(inner) : [],
    );
  }
  return false;
}

export function quote(source: string): string {
  return `'${source}'`;
}
