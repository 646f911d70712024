import { isAlias, isMap, isScalar, isSeq, type Pair, parseDocument } from 'yaml';
import { disputeOver } from './plain-scalars.ts';
import { ConfigurationError, type Path, type Problem, shorten, spell } from './problems.ts';

export interface StrictYaml {
  readonly content: unknown;
  /** The text of the value at this path as it is written in the file. */
  sourceAt(path: Path): string | undefined;
  /** Words below the path that YAML readers type differently, and aliases. `root` is the path's spelling. */
  disputesBelow(path: Path, root: string): readonly Problem[];
}

/** @throws ConfigurationError where the text is not YAML */
export function readStrictYaml(file: string, text: string): StrictYaml {
  const document = parseDocument(text);
  if (document.errors.length > 0) {
    throw new ConfigurationError(
      document.errors.map(({ message }) => ({
        file,
        key: '',
        value: undefined,
        limit: `must be YAML: ${message.split('\n')[0]}`,
        remedy: 'correct it there',
      })),
    );
  }
  const nodeAt = (path: Path): unknown => document.getIn(path, true);
  return {
    content: document.toJS() as unknown,
    sourceAt: (path) => {
      const node = nodeAt(path);
      return isScalar(node) && typeof node.source === 'string' ? node.source : undefined;
    },
    disputesBelow: (path, root) => disputes(nodeAt(path), file, root, []),
  };
}

function disputes(node: unknown, file: string, root: string, path: Path): readonly Problem[] {
  if (isMap(node)) return node.items.flatMap((pair) => disputesOfPair(pair, file, root, path));
  if (isSeq(node)) return node.items.flatMap((item, index) => disputes(item, file, root, [...path, index]));
  const key = spell(root, path);
  if (isAlias(node)) {
    const limit = 'must not be an alias: Pulumi rewrites the file without its anchor';
    return [{ file, key, value: `*${node.source}`, limit, remedy: 'write the value out' }];
  }
  if (!isScalar(node) || node.type !== 'PLAIN' || !node.source) return [];
  const dispute = disputeOver(node.source);
  if (dispute === undefined) return [];
  const remedy = `quote it: ${quote(node.source)}, or write true, false or a plain decimal number if that is meant`;
  return [{ file, key, value: shorten(node.source), limit: dispute, remedy }];
}

function disputesOfPair({ key, value }: Pair, file: string, root: string, path: Path): readonly Problem[] {
  const name = isScalar(key) ? (key.source ?? String(key.value)) : String(key);
  const here = [...path, name];
  return [...disputes(key, file, root, here), ...disputes(value, file, root, here)];
}

export function quote(source: string): string {
  return `'${source}'`;
}
