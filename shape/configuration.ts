import * as z from 'zod';
import { apiKeyVariables } from './engines/api-key.ts';
import { type ImageKnowledge, imageKnowledgeSchema } from './engines/image-knowledge.ts';
import { type HostConfig, hostSchema } from './host.ts';
import { type Model, modelFileSchema } from './model.ts';
import { at, loginTo, optionsFor, stackOf } from './operator-supplied.ts';
import { ConfigurationError, type Path, type Problem, shorten, spell } from './problems.ts';
import { secretPlaceOf, wordRemedy } from './remedies.ts';
import { namesBelow, nearest, unknownKeyRemedy, wantedAt } from './schema-keys.ts';
import { type ShapeConfig, shapeSchema, variableSchema } from './shape.ts';
import { type Fault, isTooDeep, mostLevels, readStrictYaml, type StrictYaml } from './strict-yaml.ts';
import { nameSchema, nonEmptyLineSchema } from './text.ts';
import { dataOf, draftOf, type Subject, type Validated, validate } from './validation.ts';

export { ConfigurationError, type Problem } from './problems.ts';

/** Keys of the namespace `slot:`. Those of other namespaces belong to their packages. */
const ownKeysSchema = z.strictObject({
  'slot:host': hostSchema.optional().describe('What is true of a machine, in the file of a host.'),
  'slot:shape': shapeSchema
    .optional()
    .describe('A complete description of what is served, in the file of a shape.'),
  'slot:hostsFolder': nonEmptyLineSchema
    .optional()
    .describe(
      "Folder of the host's stack file, from the project's folder, in the file of a shape; without it that folder.",
    ),
  'slot:secrets': z
    .record(
      variableSchema,
      z.strictObject({ secure: z.string().describe('As `pulumi config set --secret --path` writes it.') }),
    )
    .optional()
    .describe("Values of the shape's `secrets`, each encrypted."),
});

/** A whole stack file. All but `config` is written by Pulumi. */
export const stackFileSchema = z.strictObject({
  config: ownKeysSchema.describe("The stack's configuration."),
  encryptionsalt: z.string().optional().describe('Belongs to backend and passphrase.'),
  encryptedkey: z.string().optional().describe('Belongs to the provider of secrets.'),
  secretsprovider: z.string().optional().describe('What encrypts secrets, where it is no passphrase.'),
  environment: z.json().optional().describe('Environments of Pulumi ESC.'),
});

const ownKeys = Object.keys(ownKeysSchema.shape);
const pulumiKeys = Object.keys(stackFileSchema.shape);

/** What a stack file describes: a machine, or what a machine serves. */
export type StackFile =
  | { readonly kind: 'host'; readonly host: HostConfig }
  | {
      readonly kind: 'shape';
      readonly shape: ShapeConfig;
      /** `slot:hostsFolder`: where the host stack files lie; undefined: in the project's folder. */
      readonly hostsFolder: string | undefined;
    };

/** A stack file in which placeholders stand for what the operator has not supplied yet. */
export interface DraftedStackFile {
  readonly file: StackFile;
  /** What is missing, with how to find and to set it; empty: the file is whole. */
  readonly missing: readonly Problem[];
}

/** A configuration of which nothing is believed yet. */
export interface Source {
  /** Its name for messages, `Pulumi.<stack>.yaml`. */
  readonly file: string;
  /** All values of `config:` by their keys, the namespace included. */
  readonly config: unknown;
  /** Keys of `config:` that hold a secret, at any depth: where the values are not of a text but decrypted. */
  readonly secretKeys: readonly string[];
  /** What is wrong with the text alone. */
  readonly problems: readonly Problem[];
  /** Text of a value as written; undefined: there is none, or it was not read from a text. */
  sourceAt(path: Path): string | undefined;
}

/** What a configuration names, as far as it can be told. */
export interface Companions {
  readonly host: string | undefined;
  readonly hostsFolder: string | undefined;
  readonly model: string | undefined;
}

/**
 * Opens a stack file as strictly as its values matter: a word that YAML readers type differently is a problem.
 *
 * @throws ConfigurationError where it is not YAML
 */
export function openStackFile(file: string, text: string): Source {
  const yaml = readStrictYaml(file, text);
  const config = at(yaml.content, ['config']);
  return {
    file,
    config,
    secretKeys: [],
    problems: [
      ...keysOf(yaml.content)
        .filter((key) => !pulumiKeys.includes(key))
        .map((key) => unknownKey(file, key, key, pulumiKeys)),
      ...faultProblems(file, yaml),
    ],
    sourceAt: (path) => yaml.sourceAt(['config', ...path]),
  };
}

/**
 * The values that Pulumi hands over, instead of a text.
 *
 * @throws ConfigurationError where they are nested so deeply that nothing can be said of them
 */
export function openValues(
  file: string,
  config: Readonly<Record<string, unknown>>,
  secretKeys: readonly string[],
): Source {
  if (isTooDeep(config)) {
    const limit = `must not be nested over ${mostLevels} levels`;
    throw new ConfigurationError([{ file, key: 'config', value: undefined, limit, remedy: 'flatten it' }]);
  }
  return { file, config, secretKeys, problems: [], sourceAt: () => undefined };
}

/** The files that a shape refers to, whatever else is wrong with it. */
export function companionsOf({ config }: Source): Companions {
  const textAt = (schema: z.ZodType<string>, path: Path): string | undefined =>
    schema.safeParse(at(config, path)).data;
  return {
    host: textAt(nameSchema, ['slot:shape', 'host']),
    hostsFolder: textAt(nonEmptyLineSchema, ['slot:hostsFolder']),
    model: textAt(nameSchema, ['slot:shape', 'model']),
  };
}

/** Words after `ssh` that reach the host which a configuration describes; undefined: it does not say. */
export function loginOf({ config }: Source): string | undefined {
  return loginTo(at(config, ['slot:host']));
}

/**
 * Reads what a configuration describes. `login`: words after `ssh` that reach the shape's host, for messages.
 *
 * @throws ConfigurationError with everything that is wrong, at once
 */
export function load(source: Source, login?: string): StackFile {
  const { kind, problems, hostsFolder, subject } = examine(source, login);
  if (kind === 'host') return { kind, host: dataOf(validate(hostSchema, subject), problems) };
  return { kind, shape: dataOf(validate(shapeSchema, subject), problems), hostsFolder };
}

/**
 * The same for a review that needs no host: values that only the operator can supply may be missing.
 *
 * @throws ConfigurationError with everything else that is wrong, at once, and what is missing
 */
export function draft(source: Source, login?: string): DraftedStackFile {
  const { kind, problems, hostsFolder, subject } = examine(source, login);
  const { completed, missing } = draftOf(subject);
  const whole = <T>(validated: Validated<T>): T =>
    dataOf(validated, problems.length > 0 || validated.problems ? [...problems, ...missing] : []);
  if (kind === 'host') return { file: { kind, host: whole(validate(hostSchema, completed)) }, missing };
  return { file: { kind, shape: whole(validate(shapeSchema, completed)), hostsFolder }, missing };
}

/** @throws ConfigurationError with everything that is wrong, at once */
export function loadStackFile(file: string, text: string): StackFile {
  return load(openStackFile(file, text));
}

/**
 * Reads `models/<name>.yaml`.
 *
 * @throws ConfigurationError with everything that is wrong, at once
 */
export function loadModel(file: string, text: string): Model {
  return loadWhole(modelFileSchema, 'model', file, text);
}

/**
 * Reads `images/<name>.yaml`.
 *
 * @throws ConfigurationError with everything that is wrong, at once
 */
export function loadImageKnowledge(file: string, text: string): ImageKnowledge {
  return loadWhole(imageKnowledgeSchema, 'image', file, text);
}

/** A file that is one value as a whole. */
function loadWhole<S extends z.ZodType>(
  schema: S,
  kind: 'model' | 'image',
  file: string,
  text: string,
): z.output<S> {
  const yaml = readStrictYaml(file, text);
  const problems = yaml.faults.map((fault) =>
    problemOf(
      file,
      { ...fault, remedy: remedyOf(fault, schema, fault.path, yaml.content) },
      spell('', fault.path),
    ),
  );
  return dataOf(validate(schema, { kind, file, value: yaml.content, sourceAt: yaml.sourceAt }), problems);
}

interface Examined {
  readonly kind: 'host' | 'shape';
  /** What is wrong around the value of `slot:host` or `slot:shape`. */
  readonly problems: readonly Problem[];
  readonly hostsFolder: string | undefined;
  readonly subject: Subject;
}

function examine(source: Source, login: string | undefined): Examined {
  const { file, config, sourceAt } = source;
  const [isHost, isShape] = ['slot:host', 'slot:shape'].map((key) => at(config, [key]) !== undefined);
  const problems = [
    ...source.problems,
    ...keysOf(config).flatMap((key) => strayKey(file, key)),
    ...hostNameProblems(source),
    ...hostsFolderProblems(source),
    ...secretsProblems(source),
    ...source.secretKeys
      .filter((key) => key === 'slot:host' || key === 'slot:shape')
      .map((key) => ({
        file,
        key,
        value: undefined,
        limit: 'must not hold a secret: it would reach the state and the unit file in plain text',
        remedy: 'leave it out',
      })),
  ];
  if (isHost === isShape) {
    throw new ConfigurationError([
      ...problems,
      {
        file,
        key: 'config',
        value: isHost ? 'both' : undefined,
        limit: 'must hold either slot:host or slot:shape',
        remedy: 'slot:host describes a machine, slot:shape what one serves',
      },
    ]);
  }
  const kind = isHost ? 'host' : 'shape';
  // What is wrong with decrypted values is not said: they would be in it.
  if (source.secretKeys.includes(`slot:${kind}`)) throw new ConfigurationError(problems);
  return {
    kind,
    problems,
    hostsFolder: at(config, ['slot:hostsFolder']) as string | undefined,
    subject: {
      kind,
      file,
      value: at(config, [`slot:${kind}`]),
      login,
      sourceAt: (path) => sourceAt([`slot:${kind}`, ...path]),
    },
  };
}

/** What is wrong with the text; a word of another namespace means what its package takes it for. */
function faultProblems(file: string, { faults, content }: StrictYaml): readonly Problem[] {
  return faults
    .filter(
      ({ path: [section, key], isWord }) =>
        !isWord || (section === 'config' && ownKeys.includes(String(key))),
    )
    .map((fault) => {
      const { path } = fault;
      const remedy = remedyOf(fault, stackFileSchema, path, content);
      return secretFault(file, fault) ?? problemOf(file, { ...fault, remedy }, keyOf(path));
    });
}

/** What to do with a word, by what its key takes. */
function remedyOf(
  { source, isWord, isOfKey, remedy }: Fault,
  schema: z.ZodType,
  path: Path,
  content: unknown,
): string {
  if (!isWord || isOfKey || source === undefined) return remedy;
  const wanted = wantedAt(schema, path, content, source);
  return wanted === undefined ? remedy : wordRemedy(source, wanted);
}

/** A fault of what may be a secret in plain text. */
function secretFault(file: string, { path, source, limit }: Fault): Problem | undefined {
  const [, key, ...below] = path;
  const isPlain = key === 'slot:shape' && !path.includes('secure');
  const place = isPlain ? secretPlaceOf(below, source) : undefined;
  if (place === undefined) return undefined;
  const remedy = place.remedy(optionsFor(file));
  return { file, key: spell(key as string, place.path), value: undefined, limit, remedy };
}

/** As Pulumi spells it. What stands where the name of a secret variable belongs may be its value. */
function keyOf(path: Path): string {
  const [section, key, ...rest] = path;
  if (section !== 'config' || key === undefined) return spell('', path) || 'config';
  const isHidden = key === 'slot:secrets' && !variableSchema.safeParse(rest[0]).success;
  return spell('', [key, ...(isHidden ? [] : rest)]);
}

function problemOf(file: string, { path, source, limit, remedy }: Fault, key: string): Problem {
  if (path.includes('slot:secrets') || path.includes('secure')) {
    return { file, key, value: undefined, limit, remedy: 'write it by pulumi config set --secret --path' };
  }
  return { file, key, value: source === undefined ? undefined : shorten(source), limit, remedy };
}

function unknownKey(file: string, key: string, name: string, known: readonly string[]): Problem {
  const spelled = spell('', [key]);
  return {
    file,
    key: spelled,
    value: undefined,
    limit: 'is not a known key',
    remedy: unknownKeyRemedy(name, known),
  };
}

/** Namespaces that Pulumi and the packages of this program read. */
const foreignNamespaces = ['pulumi', 'docker', 'command'];

/** Names of our keys, with the key that each stands for first. */
const ownNames = new Map([
  ...namesBelow(hostSchema, 'slot:host'),
  ...namesBelow(shapeSchema, 'slot:shape'),
  ...ownKeys.map((key): [string, string] => [key.slice('slot:'.length), key]),
]);

/** A key of our namespace, of none, of one that nobody reads but with a name of ours, or of one that is a name. */
function strayKey(file: string, key: string): readonly Problem[] {
  const [namespace = '', name = '', ...more] = key.split(':');
  if (ownKeys.includes(key) || foreignNamespaces.includes(namespace)) return [];
  if (namespace === 'slot' || name === '' || more.length > 0) {
    return [unknownKey(file, key, `slot:${key.split(':').at(-1)}`, ownKeys)];
  }
  const meant = ownNames.has(namespace) ? nearest(name, [...ownNames.keys()]) : name;
  const ours = meant === undefined ? undefined : ownNames.get(meant);
  if (ours === undefined) return [];
  const limit = `is of a namespace that nobody here reads: ${namespace}`;
  return [{ file, key, value: undefined, limit, remedy: `did you mean ${ours}?` }];
}

function keysOf(value: unknown): readonly string[] {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? Object.keys(value) : [];
}

/** Shapes find a host by the name of its file. */
function hostNameProblems({ file, config }: Source): readonly Problem[] {
  const name = at(config, ['slot:host', 'name']);
  const stack = stackOf(file);
  if (typeof name !== 'string' || name === stack || stack === '<stack>') return [];
  return [
    {
      file,
      key: 'slot:host.name',
      value: shorten(name),
      limit: `must be ${stack}, the name of its stack, by which shapes refer to it`,
      remedy: `write it: pulumi config set --path slot:host.name ${stack} ${optionsFor(file)}`,
    },
  ];
}

function hostsFolderProblems({ file, config }: Source): readonly Problem[] {
  const value = at(config, ['slot:hostsFolder']);
  if (value === undefined) return [];
  const problem = (limit: string, remedy: string): readonly Problem[] => [
    { file, key: 'slot:hostsFolder', value: undefined, limit, remedy },
  ];
  if (at(config, ['slot:host']) !== undefined) {
    return problem('must not be in the file of a host', 'take it out: a shape says where its host lies');
  }
  return nonEmptyLineSchema.safeParse(value).success
    ? []
    : problem('must be text of one line', 'name the folder where the host stack files lie, or leave it out');
}

/** Values are for the shape's `secrets`, encrypted each: one in plain text must not lie in a file. */
function secretsProblems({ file, config, secretKeys }: Source): readonly Problem[] {
  const values = at(config, ['slot:secrets']);
  if (values === undefined) return [];
  const problem = (key: string, limit: string, remedy: string): Problem => ({
    file,
    key,
    value: undefined,
    limit,
    remedy,
  });
  const set = (name: string): string =>
    `pulumi config set --secret --path slot:secrets.${name} <value> ${optionsFor(file)}`;
  if (at(config, ['slot:host']) !== undefined) {
    return [problem('slot:secrets', 'must not be in the file of a host', 'take it out: a shape has secrets')];
  }
  if (
    values === null ||
    typeof values !== 'object' ||
    Array.isArray(values) ||
    Object.hasOwn(values, 'secure')
  ) {
    return [problem('slot:secrets', 'must be a map of encrypted values', `set each: ${set('<variable>')}`)];
  }
  const hasApiKey = at(config, ['slot:shape', 'engine', 'apiKey']) !== undefined;
  const named = [
    ...keysOf(at(config, ['slot:shape', 'secrets'])),
    ...(hasApiKey ? [apiKeyVariables.vllm] : []),
  ];
  const isDecrypted = secretKeys.includes('slot:secrets');
  return Object.keys(values).flatMap((name, index) => {
    // A name that cannot be one may be a value in the wrong place.
    if (!variableSchema.safeParse(name).success) {
      const limit = `must have names of variables as its keys: the one at ${index + 1} is none`;
      return [problem('slot:secrets', limit, `set each: ${set('<variable>')}`)];
    }
    const key = `slot:secrets.${name}`;
    if (!isDecrypted && typeof at(values, [name, 'secure']) !== 'string') {
      return [problem(key, 'must be encrypted', `${set(name)}; give the old value up, it was readable`)];
    }
    if (named.includes(name)) return [];
    const meant = nearest(name, named);
    return [
      problem(
        key,
        'must be for a variable of slot:shape.secrets',
        meant === undefined
          ? `name it there: pulumi config set --path 'slot:shape.secrets.${name}.version' <version> ${optionsFor(file)}`
          : `did you mean ${meant}?`,
      ),
    ];
  });
}
