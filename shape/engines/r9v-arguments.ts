import { nearest } from '../schema-keys.ts';
import { occurrencesIn } from './command-line.ts';
import type { EngineFault } from './invocation.ts';

/** Names that people give to what a placeholder stands for. */
const otherNames: Readonly<Record<string, string>> = {
  ctx: 'maxModelLength',
  ctxsize: 'maxModelLength',
  context: 'maxModelLength',
  contextlength: 'maxModelLength',
  maxlength: 'maxModelLength',
  model: 'payload',
  modelpath: 'payload',
  path: 'payload',
  file: 'payload',
  alias: 'servedNames',
  name: 'servedName',
  names: 'servedNames',
  modelname: 'servedName',
};

/** A name alone in braces: text of JSON and of templates looks otherwise. */
const braces = /(?<![{$])\{([A-Za-z][\w:.-]*)\}(?!\})/g;

/** Placeholders of an argument that are like a known one, and would reach the engine as they are. */
export function misspeltPlaceholders(
  argument: string,
  index: number,
  known: readonly string[],
): EngineFault[] {
  return [...argument.matchAll(braces)].flatMap(([written, name = '']) => {
    if (known.includes(name) || name.startsWith('state:')) return [];
    const meant = otherNames[name.toLowerCase().replaceAll(/[_-]/g, '')] ?? nearest(name, known);
    if (meant === undefined) return [];
    const limit = `must not use ${written}, which stands for nothing`;
    return [{ key: `arguments[${index}]`, value: argument, limit, remedy: `did you mean {${meant}}?` }];
  });
}

/** What is wrong with the arguments as the engine gets them: no model, or another length than the shape's. */
export function servingFaults(
  words: readonly string[],
  payload: string,
  maxModelLength: number,
): EngineFault[] {
  const faults: EngineFault[] = [];
  if (!words.some((word) => word.includes(payload))) {
    faults.push({
      key: 'arguments',
      value: undefined,
      limit: 'must name {payload}: without it the engine gets no model',
      remedy: "add '--model' and '{payload}'",
    });
  }
  const options = occurrencesIn(words);
  const numberOf = (...names: readonly string[]): number | undefined => {
    const found = options.findLast(({ name }) => names.includes(name))?.values[0];
    return found === undefined ? undefined : Number(found);
  };
  const context = numberOf('--ctx-size', '-c');
  // The engine may share its context among slots: then all of them together have that many times the length.
  const together = maxModelLength * (numberOf('--parallel', '-np') ?? 1);
  // 0 is the model's own length, which only the engine can say.
  if (context !== undefined && ![0, maxModelLength, together].includes(context)) {
    faults.push({
      key: 'arguments',
      value: `--ctx-size ${context}`,
      limit: `must be maxModelLength, ${maxModelLength}`,
      remedy: "write '--ctx-size' and '{maxModelLength}', or change maxModelLength",
    });
  }
  return faults;
}
