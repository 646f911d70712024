import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  ConfigurationError,
  type DraftedStackFile,
  draftStackFile,
  loadStackFile,
  type Problem,
  parseHost,
  parseShape,
  type StackFile,
} from '../shape/configuration.ts';
import type { HostConfig } from '../shape/host.ts';
import { readStrictYaml } from '../shape/strict-yaml.ts';

/** Folder of the stack files of experiments, for `--config-file`. */
export const experimentsFolder = 'experiments';

/** Values of the namespace `slot:` as Pulumi hands them over; undefined: not set. */
export interface HandedValues {
  readonly host: unknown;
  readonly shape: unknown;
  readonly hostsFolder: string | undefined;
}

/**
 * What the stack describes. Pulumi hands over values, not their text, and does not say which file they are of
 * (`--config-file`). Where they are those of `Pulumi.<stack>.yaml` that file is read as strictly as its text
 * allows; where they are not, its disputed words may be the reason, otherwise the values alone count.
 *
 * @throws ConfigurationError with everything that is wrong, at once
 */
export function configurationOf(projectFolder: string, stack: string, handed: HandedValues): StackFile {
  const file = stackFileName(stack);
  const text = textOf(join(projectFolder, file));
  const nothingHanded = Object.values(handed).every((value) => value === undefined);
  if (text !== undefined) {
    const yaml = readStrictYaml(file, text);
    if (nothingHanded || isDeepStrictEqual(valuesIn(yaml.content), handed)) return loadStackFile(file, text);
    const disputes = ['slot:host', 'slot:shape'].flatMap((key) => yaml.disputesBelow(['config', key], key));
    if (disputes.length > 0) throw new ConfigurationError(disputes);
  }
  if (nothingHanded) return stackFile(projectFolder, stack);
  const { host, shape, hostsFolder } = handed;
  if (shape === undefined) return { kind: 'host', host: parseHost(host, file) };
  return { kind: 'shape', shape: parseShape(shape, file), hostsFolder };
}

/**
 * Reads `Pulumi.<stack>.yaml` without Pulumi.
 *
 * @throws ConfigurationError with everything that is wrong, at once
 */
export function stackFile(folder: string, stack: string): StackFile {
  return loadStackFile(...foundStackFile(folder, stack));
}

/**
 * The same for a review: what only the operator can supply may be missing.
 *
 * @throws ConfigurationError with everything else that is wrong, at once
 */
export function draftedStackFile(folder: string, stack: string): DraftedStackFile {
  return draftStackFile(...foundStackFile(folder, stack));
}

/** Beside the project's other stack files, or among its experiments. */
function foundStackFile(folder: string, stack: string): [path: string, text: string] {
  for (const place of [folder, join(folder, experimentsFolder)]) {
    const path = join(place, stackFileName(stack));
    const text = textOf(path);
    if (text !== undefined) return [path, text];
  }
  const remedy =
    'write slot:host (a machine) or slot:shape (what one serves) into it; README.md says where the keys are';
  const file = join(folder, stackFileName(stack));
  throw new ConfigurationError([{ file, key: '', value: undefined, limit: 'must exist', remedy }]);
}

/**
 * The host of this name from its own stack file: plain values in review, known without any state.
 *
 * @throws ConfigurationError with everything that is wrong, at once
 */
export function hostNamed(folder: string, name: string): HostConfig {
  return hostIn(stackFile(folder, name), folder, name);
}

/**
 * The same for a review: what only the operator can supply may be missing.
 *
 * @throws ConfigurationError with everything else that is wrong, at once
 */
export function draftedHost(
  folder: string,
  name: string,
): { readonly host: HostConfig; readonly missing: readonly Problem[] } {
  const { file, missing } = draftedStackFile(folder, name);
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

function stackFileName(stack: string): string {
  return `Pulumi.${stack}.yaml`;
}

/** Undefined: there is no such file. */
export function textOf(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

function valuesIn(content: unknown): HandedValues {
  const config = (content as { config?: Record<string, unknown> } | null)?.config ?? {};
  return {
    host: config['slot:host'],
    shape: config['slot:shape'],
    hostsFolder: config['slot:hostsFolder'] as string | undefined,
  };
}
