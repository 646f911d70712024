import type { Path } from './problems.ts';
import type { Wanted } from './schema-keys.ts';
import { secretVariable } from './secret-shapes.ts';
import { quote } from './strict-yaml.ts';

/** What to write for a word that is not taken where this is wanted. */
export function wordRemedy(word: string, wanted: Wanted): string {
  switch (wanted.what) {
    case 'text':
      return `quote it: ${quote(word)}`;
    case 'boolean':
      return 'write true or false';
    case 'map':
      return 'write a map: its keys below it, indented';
    case 'list':
      return wanted.takes(word) ? `write a list: [${quote(word)}]` : 'write a list';
    case 'choice':
      return `write ${listed(wanted.choices)}`;
    case 'number': {
      const number = numberIn(word);
      return number === undefined || !wanted.takes(Number(number))
        ? 'write a plain decimal number of at most 15 digits, 6 of them behind the point'
        : `write ${number}`;
    }
    case 'form': {
      const { remedy, limit, examples } = wanted.form;
      return remedy ?? [`${limit}`, ...examples.slice(0, 1).map((one) => `e.g. ${quote(one)}`)].join(', ');
    }
  }
}

/** The plain decimal number that is surely meant by 131_072, .98, 5. and 0x1F40; a leading zero leaves it open. */
function numberIn(word: string): string | undefined {
  const bare = word.replaceAll('_', '');
  if (/^0x[0-9a-f]{1,8}$/i.test(bare)) return String(Number(bare));
  if (!/^-?(?:(?:0|[1-9]\d{0,14})\.?|(?:0|[1-9]\d{0,8})?\.\d{1,6})$/.test(bare)) return undefined;
  return String(Number(bare));
}

/** The choices as a sentence has them. */
export function listed(choices: readonly string[]): string {
  return choices.length < 2
    ? choices.join('')
    : `${choices.slice(0, -1).join(', ')} or ${choices[choices.length - 1]}`;
}

/** A place of a shape where a secret may have been put in plain text. */
export interface SecretPlace {
  /** Of the key that says that there is a secret, or of the variable in the environment. */
  readonly path: Path;
  readonly remedy: (options: string) => string;
}

/**
 * Whether what stands at this path of `slot:shape` may be a secret's value; undefined: nobody would put one there. A
 * number is shown at a version: it is to be quoted.
 */
export function secretPlaceOf(path: Path, value: unknown): SecretPlace | undefined {
  const [section, name] = path.map(String);
  const isNumber = typeof value === 'number' || typeof value === 'string';
  if (path.at(-1) === 'version' && isNumber && /^\d[\d.]{0,8}$/.test(String(value))) return undefined;
  const set = (variable: string, options: string): string =>
    `set the value, which is asked for: pulumi config set --secret --path slot:secrets.${variable} ${options}`;
  if (section === 'engine' && name === 'apiKey') {
    return {
      path: path.slice(0, 3),
      remedy: (options) => `write apiKey: { version: '1' }\n${set('VLLM_API_KEY', options)}`,
    };
  }
  const isVariable = name !== undefined && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name);
  if (section === 'environment' && isVariable && secretVariable.test(name)) {
    return {
      path: path.slice(0, 2),
      remedy: (options) =>
        `take it out, write slot:shape.secrets: { ${name}: { version: '1' } }\n${set(name, options)}`,
    };
  }
  if (section !== 'secrets') return undefined;
  const variable = isVariable ? name : '<variable>';
  return {
    // What is no name of a variable may be the value.
    path: isVariable ? path.slice(0, 3) : path.slice(0, 1),
    remedy: (options) => `write ${variable}: { version: '1' }\n${set(variable, options)}`,
  };
}
