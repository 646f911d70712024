import { join, relative, resolve } from 'node:path';
import {
  ConfigurationError,
  companionsOf,
  type DraftedStackFile,
  draft,
  load,
  loginOf,
  openStackFile,
  openValues,
  type Problem,
  type Source,
  type StackFile,
} from '../shape/configuration.ts';
import type { HostConfig } from '../shape/host.ts';
import { at, unknownFile } from '../shape/operator-supplied.ts';
import { nearest } from '../shape/schema-keys.ts';
import { textOf } from './project-files.ts';
import { stacksIn } from './stack-list.ts';

/** Folder of the stack files of experiments, for `--config-file`. */
export const experimentsFolder = 'experiments';

/** What Pulumi hands over: values, not their text, and not of which file they are (`--config-file`). */
export interface Handed {
  /** By full key, e.g. `slot:shape`: text, or for a list or a map its JSON. Secrets are decrypted. */
  readonly values: Readonly<Record<string, string>>;
  /** Keys of the values that hold a secret, at any depth. */
  readonly secretKeys: readonly string[];
}

/**
 * The configuration of a stack. Where the values are those of `Pulumi.<stack>.yaml`, or of the experiment of this
 * name, that file is read as strictly as its text allows; where they are not, its disputed words may be the
 * reason, otherwise the values alone count.
 *
 * @throws ConfigurationError where a file is not YAML, or its words are disputed
 */
export function handedSource(projectFolder: string, stack: string, { values, secretKeys }: Handed): Source {
  const config = Object.fromEntries(Object.entries(values).map(([key, text]) => [key, parsed(text)]));
  const own = ownKeysOf(config);
  if (own.length === 0) return stackSource(projectFolder, stack);
  const [beside, experiment] = stackPlaces(projectFolder, stack).map(sourceAt);
  for (const source of [beside, experiment]) {
    const keys = ownKeysOf(source?.config);
    const isSame =
      keys.length === own.length && keys.every((key) => isReadAs(at(source?.config, [key]), config[key]));
    if (source !== undefined && isSame) return source;
  }
  if (beside !== undefined && beside.problems.length > 0) throw new ConfigurationError(beside.problems);
  return openValues(unknownFile(stack), config, secretKeys);
}

function ownKeysOf(config: unknown): readonly string[] {
  return config !== null && typeof config === 'object'
    ? Object.keys(config).filter((key) => key.startsWith('slot:'))
    : [];
}

/** @throws ConfigurationError where there is no such file, or it is not YAML */
export function stackSource(folder: string, stack: string): Source {
  const found = stackPlaces(folder, stack).flatMap((path) => sourceAt(path) ?? []);
  // `pulumi stack init` of an experiment leaves a file beside the others that holds its salt alone.
  const [source] = [...found.filter(({ config }) => ownKeysOf(config).length > 0), ...found];
  if (source !== undefined) return source;
  throw new ConfigurationError([absentStack(folder, stack)]);
}

/**
 * Reads a stack file for a review: what only the operator can supply may be missing.
 *
 * @throws ConfigurationError with everything else that is wrong, at once, and what is missing
 */
export function draftedStackFile(folder: string, stack: string): DraftedStackFile {
  const source = stackSource(folder, stack);
  return draft(source, loginFor(folder, source));
}

/** Words after `ssh` that reach the host of a shape, as far as its file says; whatever else is wrong with it. */
export function loginFor(projectFolder: string, source: Source): string | undefined {
  const { host, hostsFolder = '.' } = companionsOf(source);
  if (host === undefined) return undefined;
  try {
    return loginOf(stackSource(resolve(projectFolder, hostsFolder), host));
  } catch (error) {
    if (error instanceof ConfigurationError) return undefined;
    throw error;
  }
}

/**
 * The host of this name from its own stack file: plain values in review, known without any state.
 *
 * @throws ConfigurationError with everything that is wrong, at once
 */
export function hostNamed(folder: string, name: string): HostConfig {
  return hostIn(load(stackSource(folder, name)), folder, name);
}

/**
 * The same for a review: what only the operator can supply may be missing.
 *
 * @throws ConfigurationError with everything else that is wrong, at once, and what is missing
 */
export function draftedHost(
  folder: string,
  name: string,
): { readonly host: HostConfig; readonly missing: readonly Problem[] } {
  const { file, missing } = draft(stackSource(folder, name));
  return { host: hostIn(file, folder, name), missing };
}

function hostIn(loaded: StackFile, folder: string, name: string): HostConfig {
  if (loaded.kind === 'host') return loaded.host;
  throw new ConfigurationError([
    {
      file: join(folder, stackFileName(name)),
      key: 'slot:shape',
      value: undefined,
      limit: `describes a shape, but ${name} is named as a host`,
      remedy: 'name the host whose file has slot:host, or set slot:hostsFolder to the folder where it lies',
    },
  ]);
}

/** Beside the project's other stack files, or among its experiments. */
function stackPlaces(folder: string, stack: string): readonly string[] {
  return [folder, join(folder, experimentsFolder)].map((place) => join(place, stackFileName(stack)));
}

function sourceAt(path: string): Source | undefined {
  const text = textOf(path);
  return text === undefined ? undefined : openStackFile(spelledFromHere(path), text);
}

/** As a person in the project's folder would write it. */
function spelledFromHere(path: string): string {
  const near = relative('.', path);
  return near.startsWith('..') ? path : near;
}

function absentStack(folder: string, stack: string): Problem {
  const places = [folder, join(folder, experimentsFolder)];
  const known = places.flatMap((place) => [...stacksIn(place, 'host'), ...stacksIn(place, 'shape')]);
  const meant = nearest(stack, known);
  return {
    file: spelledFromHere(join(folder, stackFileName(stack))),
    key: '',
    value: undefined,
    limit: 'must exist',
    remedy: [
      ...(meant === undefined ? [] : [`did you mean ${meant}?`]),
      known.length === 0 ? `no stack file lies in ${folder}` : `known here: ${known.join(', ')}`,
      'a new one: write slot:host (a machine) or slot:shape (what one serves) into it; docs/configuration.md has the keys',
    ].join('\n'),
  };
}

function stackFileName(stack: string): string {
  return `Pulumi.${stack}.yaml`;
}

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === 'object' ? value : text;
  } catch {
    return text;
  }
}

/** Whether Pulumi makes `handed` of what a file holds: secrets are decrypted, a scalar at the top is text. */
function isReadAs(written: unknown, handed: unknown): boolean {
  if (typeof handed === 'string' && isEncrypted(written)) return true;
  if (written === null || typeof written !== 'object' || handed === null || typeof handed !== 'object') {
    return written === handed || (typeof handed === 'string' && String(written) === handed);
  }
  const [keys, others] = [Object.keys(written), Object.keys(handed)];
  return (
    Array.isArray(written) === Array.isArray(handed) &&
    keys.length === others.length &&
    keys.every(
      (key) =>
        Object.hasOwn(handed, key) &&
        isReadAs((written as Record<string, unknown>)[key], (handed as Record<string, unknown>)[key]),
    )
  );
}

function isEncrypted(value: unknown): boolean {
  return value !== null && typeof value === 'object' && Object.keys(value).join() === 'secure';
}
