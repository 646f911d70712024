import * as z from 'zod';
import { isJsonObject } from '../json.ts';
import { lineSchema } from '../text.ts';
import {
  type CommandLine,
  changeAbbreviatedBy,
  type Flag,
  type FlagWord,
  flagAbbreviatedBy,
  flagIn,
  flagNamed,
  needsValue,
} from './command-line.ts';
import { disputeOverJson, jsonIn } from './plain-json.ts';

/**
 * Arguments written by hand, checked for what went wrong with such lists: a flag twice or against itself, one that a
 * field renders already, one cut short, flag and value in one element, quotes that a shell would have removed, JSON
 * that is none, the entrypoint repeated, a secret. Which flags an image has is asked of its knowledge, by rules.
 */
export function extraArgumentsSchema(commandLine: CommandLine) {
  return z.array(lineSchema).superRefine((elements, context) => {
    for (const { index, message, remedy } of complaintsAbout(elements, commandLine)) {
      const mayBeSecret = secretFlag.test(elements[index] ?? '');
      context.addIssue({ code: 'custom', path: [index], message, params: { remedy, mayBeSecret } });
    }
  });
}

/** A flag for a secret with more behind it in one element. */
const secretFlag = /^\W*[\w-]*(?:key|token|secret|passw)[\w-]*[^\w-]/i;

interface Complaint {
  readonly index: number;
  readonly message: string;
  readonly remedy: string;
}

/** What is wrong with a list of arguments, at most one complaint an element. */
export function complaintsAbout(elements: readonly string[], commandLine: CommandLine): readonly Complaint[] {
  const list = new ArgumentList(commandLine);
  for (const [index, element] of elements.entries()) list.take(element, index);
  list.end();
  const first = new Map(list.complaints.toReversed().map((complaint) => [complaint.index, complaint]));
  return [...first.values()].sort((a, b) => a.index - b.index);
}

/** What is wrong with a flag, and what to do; undefined: nothing. */
type Objection = readonly [message: string, remedy: string] | undefined;

/** The flag whose values are being read. */
interface Open {
  readonly index: number;
  readonly flag: FlagWord;
  readonly known: Flag | undefined;
  /** What is wrong with the values matters no more: the flag itself is. */
  readonly isRefused: boolean;
  values: number;
  /** A word came that no flag has for its value: no further one is. */
  ended: boolean;
}

class ArgumentList {
  readonly complaints: Complaint[] = [];
  readonly #commandLine: CommandLine;
  readonly #changedNames: ReadonlySet<string>;
  readonly #seen = new Map<string, string>();
  #open: Open | undefined;

  constructor(commandLine: CommandLine) {
    this.#commandLine = commandLine;
    this.#changedNames = new Set(commandLine.changed.flatMap(({ names }) => names));
  }

  take(element: string, index: number): void {
    const flag = flagIn(element);
    const objection = this.#objectionTo(element);
    if (objection !== undefined) {
      this.#complain(index, objection);
      if (/^\s*['"`]?-/.test(element)) this.#open = undefined;
      else if (this.#open !== undefined) this.#open.values += 1;
    } else if (flag === undefined) {
      this.#takeValue(element, index);
    } else {
      this.#close();
      this.#takeFlag(flag, index);
    }
  }

  /** What is wrong with an element whatever it names. */
  #objectionTo(element: string): Objection {
    if (isQuoted(element)) {
      const ofFlag = this.#open === undefined ? '' : ` of ${this.#open.flag.written}`;
      return [
        `must not be a value${ofFlag} in quotes: no shell would take them away`,
        'remove the outer quotes',
      ];
    }
    if (/^\s*--?[A-Za-z][\w.-]*\s/.test(element) || /^\s+-/.test(element)) {
      const remedy = this.#commandLine.takesEquals
        ? 'write two elements, or --flag=value'
        : 'write two elements';
      return ['must not hold a flag and its value in one element', remedy];
    }
    if (/^[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]/u.test(element)) {
      return ['must not begin with a dash that only looks like one', 'write - as it is on the keyboard'];
    }
    return element === '-' || element === '--' ? ['must be a flag or its value', 'remove it'] : undefined;
  }

  end(): void {
    this.#close();
  }

  #takeFlag(flag: FlagWord, index: number): void {
    const known = flagNamed(this.#commandLine.flags, flag.name);
    const objection =
      this.#forbidden(flag, known) ??
      this.#owned(flag, known) ??
      this.#unwhole(flag, known) ??
      this.#joined(flag) ??
      this.#repeated(flag, known);
    const values = flag.value === undefined ? 0 : 1;
    this.#open = { index, flag, known, isRefused: objection !== undefined, values, ended: false };
    if (objection !== undefined) {
      this.#complain(index, objection);
    } else if (flag.value !== undefined) {
      this.#judgeValue(flag, known, flag.value, index);
    }
  }

  #complain(index: number, [message, remedy]: NonNullable<Objection>): void {
    this.complaints.push({ index, message, remedy });
  }

  #forbidden({ name }: FlagWord, known: Flag | undefined): Objection {
    const { forbidden } = this.#commandLine;
    const flag = [name, known?.name ?? name].find((spelling) => Object.hasOwn(forbidden, spelling));
    const found = flag === undefined ? undefined : forbidden[flag];
    return found && [`must not name ${flag}: it ${found[0]}`, found[1]];
  }

  #owned({ name }: FlagWord, known: Flag | undefined): Objection {
    const { owned } = this.#commandLine;
    const whole = known?.name ?? name;
    const flag = Object.hasOwn(owned, whole)
      ? whole
      : known === undefined && Object.keys(owned).find((own) => own.startsWith(whole));
    if (flag) return [`must not name ${flag}, which is decided elsewhere`, `use that field: ${owned[flag]}`];
    const [, ...keys] = name.split('.');
    return this.#ownedKey(whole, keys);
  }

  /** A key of JSON that says what a field decides; `keys` as they are behind the flag's first dot. */
  #ownedKey(flag: string, keys: readonly string[]): Objection {
    const { ownedKeys } = this.#commandLine;
    const fields = Object.hasOwn(ownedKeys, flag) ? (ownedKeys[flag] ?? {}) : {};
    const key = keys.map((written) => written.replaceAll('-', '_')).find((one) => Object.hasOwn(fields, one));
    return key === undefined
      ? undefined
      : [`must not say ${key}, which is decided elsewhere`, `use that field: ${fields[key]}`];
  }

  #joined({ written, value }: FlagWord): Objection {
    return value === undefined || this.#commandLine.takesEquals
      ? undefined
      : [`must not join ${written} and its value by =: the engine knows no such flag`, 'write two elements'];
  }

  #unwhole({ written, name }: FlagWord, known: Flag | undefined): Objection {
    if (known !== undefined) return undefined;
    const { flags } = this.#commandLine;
    if (this.#changedNames.has(name.replace(/^--no-/, '--')) || this.#changedNames.has(name))
      return undefined;
    const [, letters = ''] = /^(-[A-Za-z]+)[\d.]+$/.exec(written) ?? [];
    if (flagNamed(flags, letters) !== undefined) {
      return ['must not hold a flag and its value in one element', 'write two elements'];
    }
    const whole = flagAbbreviatedBy(flags, name);
    if (whole !== undefined) {
      return [
        `must not be cut short: ${written} is the beginning of ${whole}`,
        `write ${whole}, or the flag that is meant`,
      ];
    }
    const gone = changeAbbreviatedBy(this.#commandLine, name);
    return (
      gone && [
        `must not be cut short: ${written} is the beginning of ${gone.whole}, which changed in ${gone.change.since}`,
        gone.change.instead,
      ]
    );
  }

  #repeated({ written, name }: FlagWord, known: Flag | undefined): Objection {
    if (known?.repeats) return undefined;
    const [, ...keys] = name.split('.');
    const positive = known?.name ?? name.replace(/^--no-/, '--');
    const identity = keys.length === 0 ? positive : name;
    const before = this.#seen.get(identity);
    if (before === undefined) {
      this.#seen.set(identity, written);
      return undefined;
    }
    return before === written
      ? [`must not name ${written} twice`, 'keep one of them']
      : [`must not name ${written} beside ${before}, which is the same flag`, 'keep one of them'];
  }

  #takeValue(element: string, index: number): void {
    const open = this.#open;
    const mayBeValue = open !== undefined && !open.ended && !isFull(open);
    const isProgram = this.#isProgram(element);
    if (mayBeValue && !(isProgram && takesAny(open))) {
      open.values += 1;
      if (!open.isRefused) this.#judgeValue(open.flag, open.known, element, index);
    } else if (isProgram) {
      const flag = mayBeValue ? open.flag.written : undefined;
      if (open !== undefined) open.ended = true;
      const orValue =
        flag === undefined || !this.#commandLine.takesEquals
          ? ''
          : `; or write ${flag}=${element} if it is a value`;
      this.#complain(index, [
        `must not repeat ${element}: the image's entrypoint is that already`,
        `remove it${orValue}`,
      ]);
    } else {
      const remedy = 'remove it; slot:shape.payload says what is served';
      this.#complain(index, ['must be a flag, or the value of the flag before it', remedy]);
    }
  }

  #isProgram(element: string): boolean {
    const program = element.split('/').at(-1) ?? '';
    return (
      this.#commandLine.programs.includes(program) ||
      /^(?:python[\d.]*|vllm\..*|ba?sh|env|exec)$/.test(program)
    );
  }

  #judgeValue({ written, name }: FlagWord, known: Flag | undefined, value: string, index: number): void {
    const objection = isQuoted(value)
      ? ([
          `must not be a value of ${written} in quotes: no shell would take them away`,
          'remove the quotes',
        ] as const)
      : known?.takes === 'nothing'
        ? ([
            `must not give ${written} a value: it takes none`,
            `write ${written}, or --no-${written.slice(2)}`,
          ] as const)
        : value === ''
          ? ([`must not be an empty value of ${written}`, 'leave the flag out, or give it a value'] as const)
          : known?.takes === 'json' && !name.includes('.')
            ? this.#objectionToJson(known.name, written, value)
            : undefined;
    if (objection !== undefined) this.#complain(index, objection);
  }

  #objectionToJson(flag: string, written: string, value: string): Objection {
    const parsed = jsonIn(value);
    const isList = this.#commandLine.jsonLists.includes(flag);
    if (!(isList ? Array.isArray(parsed) : isJsonObject(parsed))) {
      return isList
        ? [`must be a list in JSON: ${written} takes nothing else`, `write it in single quotes: '["value"]'`]
        : [
            `must be an object in JSON: ${written} takes nothing else`,
            `write it in single quotes: '{"key": 1}'`,
          ];
    }
    const dispute = disputeOverJson(value);
    if (dispute !== undefined) return [dispute.limit, dispute.remedy];
    return this.#ownedKey(flag, Object.keys(parsed as object));
  }

  /** No more values come for the flag. */
  #close(): void {
    const open = this.#open;
    this.#open = undefined;
    if (open?.known === undefined || open.isRefused || open.values > 0 || !needsValue(open.known)) return;
    const message = `must be followed by its value: ${open.flag.written} takes one`;
    this.#complain(open.index, [message, 'write it as the next element']);
  }
}

/** Whether any number of words may follow: it is a list, or not known. */
function takesAny({ known }: Open): boolean {
  return known === undefined || known.takes === 'list';
}

function isFull({ known, values }: Open): boolean {
  switch (known?.takes) {
    case 'nothing':
      return true;
    case 'value':
    case 'optional':
    case 'json':
      return values > 0;
    default:
      return false;
  }
}

/** Longer than one quote, and the same quote at both ends. */
function isQuoted(text: string): boolean {
  return /^\s*(['"`]).*\1\s*$/s.test(text);
}
