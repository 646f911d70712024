import { join, resolve } from 'node:path';
import { ConfigurationError, loadModel, type StackFile } from '../shape/configuration.ts';
import type { HostConfig } from '../shape/host.ts';
import type { Model } from '../shape/model.ts';
import { planRelease } from '../shape/plan.ts';
import type { Problem } from '../shape/problems.ts';
import type { Release } from '../shape/release.ts';
import { readTemplates } from '../templates/templates.ts';
import { draftedHost, draftedStackFile, hostNamed, textOf } from './stack-files.ts';

/** A shape with the machine that serves it. */
export interface PlannedShape {
  readonly host: HostConfig;
  readonly release: Release;
}

/** A shape as a review without a host sees it. */
export interface DraftedShape extends PlannedShape {
  /** What the operator has not supplied yet; placeholders stand for it. */
  readonly missing: readonly Problem[];
}

type ShapeFile = Extract<StackFile, { kind: 'shape' }>;

/**
 * Renders a shape's release with the host file, the templates, the model and the patches that lie in the project.
 *
 * @throws ConfigurationError with everything that is wrong, at once
 */
export function plannedShape(projectFolder: string, stack: string, file: ShapeFile): PlannedShape {
  const { shape, hostsFolder = '.' } = file;
  const host = hostNamed(resolve(projectFolder, hostsFolder), shape.host);
  const patches = patchTexts(projectFolder, shape.patches);
  const model = modelOf(projectFolder, stack, shape.model);
  return { host, release: planRelease({ host, shape, stack, templates: readTemplates(), model, patches }) };
}

/**
 * The same from the files alone, where values and diffs that only the operator can supply may be missing.
 *
 * @throws ConfigurationError with everything else that is wrong, at once
 */
export function draftedShape(projectFolder: string, stack: string): DraftedShape {
  const drafted = draftedStackFile(projectFolder, stack);
  const file = asShape(drafted.file, stack);
  const { hostsFolder = '.' } = file;
  const { host, missing } = draftedHost(resolve(projectFolder, hostsFolder), file.shape.host);
  const patches = patchTexts(projectFolder, file.shape.patches);
  const absent = file.shape.patches.filter((name) => !patches.has(name));
  const shape = { ...file.shape, patches: file.shape.patches.filter((name) => patches.has(name)) };
  const model = modelOf(projectFolder, stack, shape.model);
  return {
    host,
    release: planRelease({ host, shape, stack, templates: readTemplates(), model, patches }),
    missing: [...missing, ...drafted.missing, ...absent.map((name) => absentPatch(stack, name))],
  };
}

/** @throws ConfigurationError where the file describes a host */
export function asShape(file: StackFile, stack: string): ShapeFile {
  if (file.kind === 'shape') return file;
  throw new ConfigurationError([
    {
      file: `Pulumi.${stack}.yaml`,
      key: 'slot:host',
      value: undefined,
      limit: 'describes a host, but a shape is asked for',
      remedy: 'name the stack of a shape: its file has slot:shape',
    },
  ]);
}

function patchTexts(projectFolder: string, names: readonly string[]): ReadonlyMap<string, string> {
  const texts = names.flatMap((name) => {
    const text = textOf(join(projectFolder, 'patches', name));
    return text === undefined ? [] : [[name, text] as const];
  });
  return new Map(texts);
}

function absentPatch(stack: string, name: string): Problem {
  return {
    file: `Pulumi.${stack}.yaml`,
    key: 'slot:shape.patches',
    value: name,
    limit: 'must be a file below patches/',
    remedy: 'put the diff there',
  };
}

function modelOf(projectFolder: string, stack: string, name: string | undefined): Model | undefined {
  if (name === undefined) return undefined;
  const file = `models/${name}.yaml`;
  const text = textOf(join(projectFolder, file));
  if (text !== undefined) return loadModel(file, text);
  throw new ConfigurationError([
    {
      file: `Pulumi.${stack}.yaml`,
      key: 'slot:shape.model',
      value: name,
      limit: 'must be the name of a file in models/',
      remedy: `write ${file}, or leave the key out`,
    },
  ]);
}
