import { type HostConfig, hostSchema } from './host.ts';
import { type Model, modelFileSchema } from './model.ts';
import { at } from './operator-supplied.ts';
import { ConfigurationError, type Problem } from './problems.ts';
import { unknownKeyRemedy } from './schema-keys.ts';
import { type ShapeConfig, shapeSchema } from './shape.ts';
import { readStrictYaml } from './strict-yaml.ts';
import { dataOf, draftOf, type Subject, type Validated, validate } from './validation.ts';

export { ConfigurationError, type Problem } from './problems.ts';

/** What a stack file describes: a machine, or what a machine serves. */
export type StackFile =
  | { readonly kind: 'host'; readonly host: HostConfig }
  | {
      readonly kind: 'shape';
      readonly shape: ShapeConfig;
      /** `slot:hostsFolder`: where the host stack files lie; undefined: in the project's folder. */
      readonly hostsFolder: string | undefined;
    };

/** Keys of the namespace `slot:`. */
const ownKeys = ['slot:host', 'slot:shape', 'slot:hostsFolder', 'slot:secrets'];

/** Keys of a stack file that Pulumi itself reads. */
const pulumiKeys = ['config', 'encryptionsalt', 'encryptedkey', 'secretsprovider', 'environment'];

/** A stack file in which placeholders stand for what the operator has not supplied yet. */
export interface DraftedStackFile {
  readonly file: StackFile;
  /** What is missing, with how to find and to set it; empty: the file is whole. */
  readonly missing: readonly Problem[];
}

/**
 * Reads a stack file as strictly as its values matter: a word that YAML readers type differently is refused,
 * and so is every unknown key. `file` is its name for messages, `Pulumi.<stack>.yaml`.
 *
 * @throws ConfigurationError with everything that is wrong, at once
 */
export function loadStackFile(file: string, text: string): StackFile {
  const { kind, problems, hostsFolder, subject } = openStackFile(file, text);
  if (kind === 'host') return { kind, host: dataOf(validate(hostSchema, subject), problems) };
  return { kind, shape: dataOf(validate(shapeSchema, subject), problems), hostsFolder };
}

/**
 * Reads a stack file for a review that needs no host: values that only the operator can supply may be missing.
 *
 * @throws ConfigurationError with everything else that is wrong, at once, and what is missing
 */
export function draftStackFile(file: string, text: string): DraftedStackFile {
  const { kind, problems, hostsFolder, subject } = openStackFile(file, text);
  const { completed, missing } = draftOf(subject);
  const whole = <T>(validated: Validated<T>): T =>
    dataOf(validated, problems.length > 0 || validated.problems ? [...problems, ...missing] : []);
  if (kind === 'host') return { file: { kind, host: whole(validate(hostSchema, completed)) }, missing };
  return { file: { kind, shape: whole(validate(shapeSchema, completed)), hostsFolder }, missing };
}

interface OpenedStackFile {
  readonly kind: 'host' | 'shape';
  /** What is wrong around the value of `slot:host` or `slot:shape`. */
  readonly problems: readonly Problem[];
  readonly hostsFolder: string | undefined;
  readonly subject: Subject;
}

function openStackFile(file: string, text: string): OpenedStackFile {
  const yaml = readStrictYaml(file, text);
  const config = at(yaml.content, ['config']);
  const found = ownKeys.filter((key) => at(config, [key]) !== undefined);
  const problems = [
    ...keyProblems(file, yaml.content, config),
    ...found.flatMap((key) => yaml.disputesBelow(['config', key], key)),
    ...hostsFolderProblems(file, at(config, ['slot:hostsFolder'])),
    ...secretsProblems(file, at(config, ['slot:secrets'])),
  ];
  const isHost = found.includes('slot:host');
  if (isHost === found.includes('slot:shape')) {
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
  return {
    kind,
    problems,
    hostsFolder: at(config, ['slot:hostsFolder']) as string | undefined,
    subject: {
      kind,
      file,
      value: at(config, [`slot:${kind}`]),
      sourceAt: (path) => yaml.sourceAt(['config', `slot:${kind}`, ...path]),
    },
  };
}

/**
 * Validates the value of `slot:host`, as Pulumi hands it over.
 *
 * @throws ConfigurationError with everything that is wrong, at once
 */
export function parseHost(value: unknown, file: string): HostConfig {
  return dataOf(validate(hostSchema, { kind: 'host', file, value, sourceAt: () => undefined }));
}

/**
 * Validates the value of `slot:shape`, as Pulumi hands it over.
 *
 * @throws ConfigurationError with everything that is wrong, at once
 */
export function parseShape(value: unknown, file: string): ShapeConfig {
  return dataOf(validate(shapeSchema, { kind: 'shape', file, value, sourceAt: () => undefined }));
}

/**
 * Reads `models/<name>.yaml`.
 *
 * @throws ConfigurationError with everything that is wrong, at once
 */
export function loadModel(file: string, text: string): Model {
  const yaml = readStrictYaml(file, text);
  const subject: Subject = { kind: 'model', file, value: yaml.content, sourceAt: yaml.sourceAt };
  return dataOf(validate(modelFileSchema, subject), yaml.disputesBelow([], ''));
}

function keyProblems(file: string, content: unknown, config: unknown): readonly Problem[] {
  const unknown = (name: string, key: string, known: readonly string[]): Problem => ({
    file,
    key,
    value: undefined,
    limit: 'is not a known key',
    remedy: unknownKeyRemedy(name, known),
  });
  return [
    ...keysOf(content)
      .filter((key) => !pulumiKeys.includes(key))
      .map((key) => unknown(key, key, pulumiKeys)),
    ...keysOf(config)
      .filter((key) => !ownKeys.includes(key) && looksLikeOurs(key, at(config, [key])))
      .map((key) => unknown(`slot:${key.split(':').at(-1)}`, key, ownKeys)),
  ];
}

/** Ours, without a namespace, or a map under one of our names in another project's namespace. */
function looksLikeOurs(key: string, value: unknown): boolean {
  const [namespace, ...name] = key.split(':');
  if (name.length !== 1 || namespace === 'slot') return true;
  return ownKeys.includes(`slot:${name[0]}`) && value !== null && typeof value === 'object';
}

function keysOf(value: unknown): readonly string[] {
  return value !== null && typeof value === 'object' ? Object.keys(value) : [];
}

function hostsFolderProblems(file: string, value: unknown): readonly Problem[] {
  if (value === undefined || (typeof value === 'string' && value !== '')) return [];
  const remedy = 'name the folder where the host stack files lie, or leave it out';
  return [{ file, key: 'slot:hostsFolder', value: JSON.stringify(value), limit: 'must be text', remedy }];
}

/** Values are for the shape's `secrets`, encrypted each: one in plain text must not lie in a file. */
function secretsProblems(file: string, value: unknown): readonly Problem[] {
  return keysOf(value)
    .filter((name) => typeof at(value, [name, 'secure']) !== 'string')
    .map((name) => ({
      file,
      key: `slot:secrets.${name}`,
      value: undefined,
      limit: 'must be encrypted',
      remedy: `pulumi config set --secret --path slot:secrets.${name} <value>; give the old value up, it was readable`,
    }));
}
