import { engineIdentityOf } from './engine-identity.ts';
import { invoke } from './engines/engine.ts';
import { imageReference } from './engines/image.ts';
import { imageFacts, type NamedImageKnowledge } from './engines/image-knowledge.ts';
import type { EngineInvocation } from './engines/invocation.ts';
import type { HostConfig } from './host.ts';
import type { Model } from './model.ts';
import { identityLabel, namesOf } from './names.ts';
import { patchedFilesOf } from './patches.ts';
import { expectedPayload } from './payload-expectation.ts';
import { manifestFile, type PayloadManifest } from './payload-manifest.ts';
import { ConfigurationError, type Problem } from './problems.ts';
import { manifestVersion, type Release, type ReviewFacts } from './release.ts';
import { renderService, renderTarget, type Templates, type UnitView } from './render.ts';
import { checksOf } from './served-checks.ts';
import type { ShapeConfig } from './shape.ts';
import { nameSchema } from './text.ts';
import { type Volumes, volumesOf } from './volumes.ts';

export interface PlanInput {
  readonly host: HostConfig;
  readonly shape: ShapeConfig;
  /** Name of the shape's stack. */
  readonly stack: string;
  readonly templates: Templates;
  /** What `models/` says of the shape's model; undefined: it names none. */
  readonly model?: Model | undefined;
  /** What `images/` says of the shape's image; undefined: nothing. */
  readonly image?: NamedImageKnowledge | undefined;
  /** Texts of the diffs that the shape names, by their path below `patches/`. */
  readonly patches: ReadonlyMap<string, string>;
  /** What `patches/SHA256SUMS` records of them, by the same paths; undefined: it is not asked. */
  readonly patchHashes?: ReadonlyMap<string, string> | undefined;
  /** Manifests of the host's payloads, by their file's name; undefined: none is sealed. */
  readonly manifests?: ReadonlyMap<string, PayloadManifest> | undefined;
}

/**
 * All that the host needs to serve this shape. The same input gives the same release, byte for byte.
 *
 * @throws ConfigurationError where shape and host do not fit together, with everything that is wrong
 */
export function planRelease(input: PlanInput): Release {
  const { host, shape, stack, templates, patches } = input;
  const file = `Pulumi.${stack}.yaml`;
  const shortName = shape.shortName ?? stack;
  const patched = patchedFilesOf(shape.patches, patches, file, input.patchHashes);
  const volumes = volumesOf(host, shape, patched.files, file);
  const engine = invocationOf(host, shape, volumes);
  const problems = [
    ...misfits(host, shape, shortName, file),
    ...takenVariables(shape, engine, file),
    ...patched.problems,
    ...volumes.problems,
    ...engine.faults.map((fault) => ({ ...fault, file, key: `slot:shape.engine.${fault.key}` })),
  ];
  if (problems.length > 0) throw new ConfigurationError(problems);

  const environment = sortedByName(shape.environment);
  const view = unitView({ host, shape, shortName, engine, volumes, environment });
  const engineIdentity = engineIdentityOf(renderService(templates, view), patched.files);
  const { deadlines, limits, payload } = shape;
  return {
    version: manifestVersion,
    service: host.service,
    shape: stack,
    container: view.container,
    engineKind: shape.engine.kind,
    engineIdentity,
    image: view.image,
    ...(engine.entrypoint && { entrypoint: [...engine.entrypoint] }),
    arguments: [...engine.arguments],
    environment,
    secrets: [...view.secrets],
    unit: renderService(templates, { ...view, identity: { label: identityLabel, value: engineIdentity } }),
    target: renderTarget(templates, namesOf(host.service)),
    patches: [...patched.files],
    payload: {
      folder: volumes.payload.source,
      ...(payload.entry === undefined ? {} : { entry: payload.entry }),
      verify: payload.verify,
      ...(payload.expected && { expected: expectedPayload(payload.expected) }),
      ...sealOf(volumes.payload.source, input),
    },
    ...(volumes.mounts.length > 0 && {
      mounts: volumes.mounts.map(({ source, target, expected }) => ({
        source,
        target,
        ...(expected && { expected: expectedPayload(expected) }),
        ...sealOf(source, input),
      })),
    }),
    stateFolders: Object.values(volumes.state).map(({ source }) => source),
    port: host.port,
    healthPath: engine.healthPath,
    servedNames: [...engine.servedNames],
    maxModelLength: shape.engine.maxModelLength,
    memlock: limits.memlock === 'infinity' ? 'infinity' : limits.memlock.bytes,
    deviceFiles: host.deviceFiles,
    gpus: host.gpus,
    gpuMemoryUtilization: shape.engine.gpuMemoryUtilization,
    memoryGateBytes: host.memoryGate?.bytes ?? 0,
    deadlines: {
      drainSeconds: deadlines.drain.seconds,
      stopSeconds: deadlines.stop.seconds,
      bootSeconds: deadlines.boot.seconds,
      checkSeconds: deadlines.check.seconds,
      settleSeconds: deadlines.settle.seconds,
    },
    checks: checksOf(engine),
    review: reviewFactsOf(input, engine),
  };
}

/** Where hashes are to hold: elsewhere a seal would make another release of what nobody verifies. */
function sealOf(root: string, { shape, manifests }: PlanInput): { readonly manifest?: PayloadManifest } {
  const manifest = manifests?.get(manifestFile(root));
  return shape.payload.verify === 'hashes' && manifest !== undefined ? { manifest } : {};
}

function reviewFactsOf({ host, shape, model, image }: PlanInput, engine: EngineInvocation): ReviewFacts {
  const { gpuArchitecture, gpuMemory, integratedGpu, selinux, modelsRoot } = host;
  return {
    ...(model && { model }),
    ...(image && { image: imageFacts(image, engine.arguments) }),
    ...(shape.payload.quantization !== undefined && { quantization: shape.payload.quantization }),
    ...(gpuArchitecture !== undefined && { gpuArchitecture }),
    ...(gpuMemory !== undefined && { gpuMemoryBytes: gpuMemory.bytes }),
    ...(integratedGpu !== undefined && { integratedGpu }),
    ...(selinux !== undefined && { selinux }),
    modelsRoot,
    ...(shape.importGuard !== undefined && { importGuard: shape.importGuard }),
    exceptions: shape.exceptions,
  };
}

function invocationOf(host: HostConfig, shape: ShapeConfig, volumes: Volumes): EngineInvocation {
  const { publicName } = host;
  const { target } = volumes.payload;
  return invoke(shape.engine, {
    port: host.port,
    payload: shape.payload.entry === undefined ? target : `${target}/${shape.payload.entry}`,
    state: Object.fromEntries(Object.entries(volumes.state).map(([name, volume]) => [name, volume.target])),
    mounted: volumes.all.map((volume) => volume.target),
    publicNames: publicName === undefined || publicName === shape.engine.servedName ? [] : [publicName],
  });
}

interface UnitParts {
  readonly host: HostConfig;
  readonly shape: ShapeConfig;
  readonly shortName: string;
  readonly engine: EngineInvocation;
  readonly volumes: Volumes;
  readonly environment: Readonly<Record<string, string>>;
}

function unitView({ host, shape, shortName, engine, volumes, environment }: UnitParts): UnitView {
  const names = namesOf(host.service);
  const { memlock, pids } = shape.limits;
  return {
    service: host.service,
    target: names.target,
    container: names.container(shortName),
    shortName,
    logFolder: names.logFolder,
    containerIdPath: names.containerIdPath,
    identity: undefined,
    image: imageReference(shape.engine.image),
    argumentLines: byFlag(engine.arguments),
    environment: Object.entries(environment).map(([name, value]) => ({ name, value })),
    secrets: Object.entries({ ...shape.secrets, ...engine.secrets })
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([variable, { version }]) => ({ variable, name: names.secret(variable, version) })),
    volumes: volumes.all,
    deviceFiles: host.deviceFiles,
    securityOptions: host.securityOptions,
    hostIpc: shape.engine.ipc === 'host',
    pidsLimit: pids === 'infinity' ? 0 : pids,
    memlock: memlock === 'infinity' ? memlock : String(memlock.bytes),
    healthUrl: `http://127.0.0.1:${host.port}${engine.healthPath}`,
  };
}

function misfits(host: HostConfig, shape: ShapeConfig, shortName: string, file: string): readonly Problem[] {
  const problems: Problem[] = [];
  if (shape.host !== host.name) {
    const limit = `must be ${host.name}, the name of the host that was read`;
    problems.push({ file, key: 'slot:shape.host', value: shape.host, limit, remedy: 'name the right one' });
  }
  for (const variable of Object.keys(shape.secrets).filter((name) =>
    Object.hasOwn(shape.environment, name),
  )) {
    const limit = 'must not be in slot:shape.environment as well';
    const remedy = 'a variable has one value: take it out of one of them';
    problems.push({ file, key: `slot:shape.secrets.${variable}`, value: undefined, limit, remedy });
  }
  if (
    shape.engine.kind === 'vllm' &&
    host.gpus.length > 0 &&
    shape.engine.tensorParallel > host.gpus.length
  ) {
    const limit = `must not be more than the ${host.gpus.length} of slot:host.gpus`;
    const next = `'slot:host.gpus[${host.gpus.length}]'`;
    const remedy = `lower it, or name the next GPU of the slot: pulumi config set --path ${next} <PCI address> -s ${host.name}`;
    const value = String(shape.engine.tensorParallel);
    problems.push({ file, key: 'slot:shape.engine.tensorParallel', value, limit, remedy });
  }
  const name = nameSchema.safeParse(shortName);
  if (!name.success) {
    const limit = name.error.issues.map(({ message }) => message).join(', ');
    const remedy = "set a short name: the stack's does not suit a container";
    problems.push({ file, key: 'slot:shape.shortName', value: shortName, limit, remedy });
  }
  return problems;
}

/** Variables that the engine's own keys fill must not be said again. */
function takenVariables(shape: ShapeConfig, engine: EngineInvocation, file: string): readonly Problem[] {
  const places = { environment: shape.environment, secrets: shape.secrets };
  return Object.keys(engine.secrets).flatMap((variable) =>
    Object.entries(places)
      .filter(([, variables]) => Object.hasOwn(variables, variable))
      .map(([place]) => ({
        file,
        key: `slot:shape.${place}.${variable}`,
        value: undefined,
        limit: 'must not be there: slot:shape.engine.apiKey fills the variable',
        remedy: 'take it out of one of them',
      })),
  );
}

/** A flag and what follows it in one group, so that a review reads one option a line. */
function byFlag(words: readonly string[]): readonly (readonly string[])[] {
  const groups: string[][] = [];
  for (const word of words) {
    const group = groups.at(-1);
    if (group === undefined || word.startsWith('-')) groups.push([word]);
    else group.push(word);
  }
  return groups;
}

function sortedByName(environment: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(environment).sort(([a], [b]) => (a < b ? -1 : 1)));
}
