import { perRelease } from './per-release.ts';
import { decodeWords, logicalLines } from './systemd.ts';

/** A line of a unit, its value as written. */
export interface Directive {
  readonly section: string;
  readonly name: string;
  readonly value: string;
}

/** The words of `podman run` as podman gets them. */
export interface ContainerCommand {
  /** Before the image, each in one word. */
  readonly options: readonly string[];
  readonly image: string;
  /** After the image, in order. */
  readonly arguments: readonly string[];
  /** Values of the option each time that it is there, in order. */
  values(option: `--${string}`): readonly string[];
}

/** What systemd and podman make of a unit's text. */
export interface UnitText {
  readonly directives: readonly Directive[];
  /** Value of the directive's last line, which counts; undefined: there is none. */
  last(section: 'Unit' | 'Service', name: string): string | undefined;
  /** Programs that the unit runs, as words, by the directive; undefined for a line that cannot be read. */
  commands(name: `Exec${string}`): readonly (readonly string[] | undefined)[];
  /** Of `ExecStart`; undefined: it cannot be read, or is no `podman run`. */
  readonly container: ContainerCommand | undefined;
  /** Why systemd would refuse a line, or change it; undefined: it takes each as it is meant. */
  readonly fault: string | undefined;
}

/** What systemd fills in at each start; it says nothing of the shape. */
const variables = { INVOCATION_ID: '<invocation>' };

/** The release's unit, read once. */
export const unitTextOf = perRelease(({ unit }) => readUnit(unit));

export function readUnit(text: string): UnitText {
  const directives = directivesIn(text);
  const faults: string[] = [];
  const wordsOf = ({ name, value }: Directive): readonly string[] | undefined => {
    try {
      return decodeWords(value.replace(/^[-:@+!]+/, ''), variables);
    } catch (error) {
      faults.push(`${name}: ${(error as Error).message}`);
      return undefined;
    }
  };
  const programs = directives
    .filter(({ name }) => name.startsWith('Exec'))
    .map((directive) => ({ name: directive.name, words: wordsOf(directive) }));
  for (const { name, value } of directives) {
    if (!name.startsWith('Exec') && value.replaceAll('%%', '').includes('%')) {
      faults.push(`${name}: systemd would replace a % in ${value}`);
    }
  }
  const [start] = programs.filter(({ name }) => name === 'ExecStart');
  return {
    directives,
    last: (section, name) =>
      directives.filter((line) => line.section === section && line.name === name).at(-1)?.value,
    commands: (name) => programs.filter((program) => program.name === name).map(({ words }) => words),
    container: start?.words && containerCommand(start.words),
    fault: faults[0],
  };
}

function directivesIn(text: string): readonly Directive[] {
  let section = '';
  return logicalLines(text).flatMap((line): Directive[] => {
    const [, heading] = /^\[(.*)\]$/.exec(line) ?? [];
    if (heading !== undefined) {
      section = heading;
      return [];
    }
    const at = line.indexOf('=');
    return at === -1 ? [] : [{ section, name: line.slice(0, at).trim(), value: line.slice(at + 1).trim() }];
  });
}

/** Every option of the template is one word: the first word without a dash is the image. */
function containerCommand([program, verb, ...words]: readonly string[]): ContainerCommand | undefined {
  const at = words.findIndex((word) => !word.startsWith('-'));
  const image = words[at];
  if (!program?.endsWith('podman') || verb !== 'run' || image === undefined) return undefined;
  const options = words.slice(0, at);
  return {
    options,
    image,
    arguments: words.slice(at + 1),
    values: (option) =>
      options.flatMap((word) => (word.startsWith(`${option}=`) ? [word.slice(option.length + 1)] : [])),
  };
}
