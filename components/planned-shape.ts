import { join, resolve } from 'node:path';
import {
  ConfigurationError,
  companionsOf,
  draft,
  load,
  loadModel,
  type Source,
  type StackFile,
} from '../shape/configuration.ts';
import { knowledgeOf } from '../shape/engines/image-knowledge.ts';
import type { HostConfig } from '../shape/host.ts';
import type { Model } from '../shape/model.ts';
import { parsePatchHashes, patchHashesFile } from '../shape/patches.ts';
import { planRelease } from '../shape/plan.ts';
import { allOf, type Problem } from '../shape/problems.ts';
import type { Release } from '../shape/release.ts';
import type { ShapeConfig } from '../shape/shape.ts';
import { readTemplates } from '../templates/templates.ts';
import { imageFiles } from './image-files.ts';
import { payloadManifests } from './payload-manifests.ts';
import { textOf } from './project-files.ts';
import { draftedHost, type Handed, handedSource, hostNamed, loginFor, stackSource } from './stack-files.ts';

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

/** What a stack's configuration comes to: a machine, or a shape with the machine that serves it. */
export type PlannedStack =
  | { readonly kind: 'host'; readonly host: HostConfig }
  | ({ readonly kind: 'shape' } & PlannedShape);

/**
 * What the values come to that Pulumi hands over; of a shape with its host, templates, model and patches.
 *
 * @throws ConfigurationError with everything that is wrong in all of their files, at once
 */
export function plannedStack(projectFolder: string, stack: string, handed: Handed): PlannedStack {
  const source = handedSource(projectFolder, stack, handed);
  const { file, host, model } = loadAll(projectFolder, source);
  if (file.kind === 'host') return file;
  return { kind: 'shape', ...render(projectFolder, stack, file, present(host), model) };
}

/**
 * Renders a shape's release with the host file, the templates, the model and the patches that lie in the project.
 *
 * @throws ConfigurationError with everything that is wrong in all of their files, at once
 */
export function plannedShape(projectFolder: string, stack: string): PlannedShape {
  const { file, host, model } = loadAll(projectFolder, stackSource(projectFolder, stack));
  const shapeFile = asShape(file, stack);
  return render(projectFolder, stack, shapeFile, present(host), model);
}

/**
 * The same from the files alone, where values and diffs that only the operator can supply may be missing.
 *
 * @throws ConfigurationError with everything else that is wrong in all of their files, at once, and what is missing
 */
export function draftedShape(projectFolder: string, stack: string): DraftedShape {
  const source = stackSource(projectFolder, stack);
  const { host: name, hostsFolder = '.', model: modelName } = companionsOf(source);
  const missing: Problem[] = [];
  const noting = <T extends { readonly missing: readonly Problem[] }>(drafted: T): T => {
    missing.push(...drafted.missing);
    return drafted;
  };
  try {
    const [hostDraft, drafted, model] = allOf(
      () => (name === undefined ? undefined : noting(draftedHost(resolve(projectFolder, hostsFolder), name))),
      () => noting(draft(source, loginFor(projectFolder, source))),
      () => modelOf(projectFolder, source.file, modelName),
    );
    const file = asShape(drafted.file, stack);
    const patches = patchTexts(projectFolder, file.shape.patches);
    const absent = file.shape.patches.filter((patch) => !patches.has(patch));
    missing.push(...absent.map((patch) => absentPatch(source.file, patch)));
    const shape = { ...file.shape, patches: file.shape.patches.filter((patch) => patches.has(patch)) };
    return { ...render(projectFolder, stack, { ...file, shape }, present(hostDraft).host, model), missing };
  } catch (error) {
    if (error instanceof ConfigurationError) throw new ConfigurationError([...error.problems, ...missing]);
    throw error;
  }
}

/** A shape and its host for a question that needs no release. */
export interface ShapeWithHost {
  /** The shape's file. */
  readonly file: string;
  readonly shape: ShapeConfig;
  /** Where the host's file lies. */
  readonly hostsFolder: string;
  readonly host: HostConfig;
  /** What the shape's file lacks yet. */
  readonly missing: readonly Problem[];
  /** What the host's file lacks without which it cannot be reached. */
  readonly unreachable: readonly Problem[];
}

/** @throws ConfigurationError with what is wrong in the shape's file, or in its host's */
export function shapeWithHost(projectFolder: string, stack: string): ShapeWithHost {
  const source = stackSource(projectFolder, stack);
  const drafted = draft(source, loginFor(projectFolder, source));
  const { shape, hostsFolder: named = '.' } = asShape(drafted.file, stack);
  const hostsFolder = resolve(projectFolder, named);
  const { host, missing } = draftedHost(hostsFolder, shape.host);
  return {
    file: source.file,
    shape,
    hostsFolder,
    host,
    missing: drafted.missing,
    unreachable: missing.filter(({ key }) => /\.(?:address|hostKey)$/.test(key)),
  };
}

interface LoadedFiles {
  readonly file: StackFile;
  readonly host: HostConfig | undefined;
  readonly model: Model | undefined;
}

/** A stack's configuration and the files that it names. */
function loadAll(projectFolder: string, source: Source): LoadedFiles {
  const { host: name, hostsFolder = '.', model: modelName } = companionsOf(source);
  const [file, host, model] = allOf(
    () => load(source, loginFor(projectFolder, source)),
    () => (name === undefined ? undefined : hostNamed(resolve(projectFolder, hostsFolder), name)),
    () => modelOf(projectFolder, source.file, modelName),
  );
  return { file, host, model };
}

function render(
  projectFolder: string,
  stack: string,
  { shape, hostsFolder = '.' }: ShapeFile,
  host: HostConfig,
  model: Model | undefined,
): PlannedShape {
  const patches = patchTexts(projectFolder, shape.patches);
  const patchHashes = parsePatchHashes(textOf(join(projectFolder, 'patches', patchHashesFile)) ?? '');
  const image = knowledgeOf(imageFiles(projectFolder), shape.engine.image.digest);
  const templates = readTemplates();
  const manifests = payloadManifests(resolve(projectFolder, hostsFolder));
  return {
    host,
    release: planRelease({ host, shape, stack, templates, model, image, patches, patchHashes, manifests }),
  };
}

/** A shape that is valid names its host. */
function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a valid shape without host');
  return value;
}

/** @throws ConfigurationError where the file describes a host */
function asShape(file: StackFile, stack: string): ShapeFile {
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

function absentPatch(file: string, name: string): Problem {
  return {
    file,
    key: 'slot:shape.patches',
    value: name,
    limit: 'must be a file below patches/',
    remedy: 'put the diff there',
  };
}

function modelOf(projectFolder: string, shapeFile: string, name: string | undefined): Model | undefined {
  if (name === undefined) return undefined;
  const file = `models/${name}.yaml`;
  const text = textOf(join(projectFolder, file));
  if (text !== undefined) return loadModel(file, text);
  throw new ConfigurationError([
    {
      file: shapeFile,
      key: 'slot:shape.model',
      value: name,
      limit: 'must be the name of a file in models/',
      remedy: `write ${file}, or leave the key out`,
    },
  ]);
}
