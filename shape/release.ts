import { createHash } from 'node:crypto';
import * as z from 'zod';
import { checkSchema } from './checks.ts';
import { imageFactsSchema } from './engines/image-knowledge.ts';
import { modelSchema } from './model.ts';
import { expectedPayloadSchema } from './payload-expectation.ts';
import { payloadManifestSchema } from './payload-manifest.ts';
import { nameSchema } from './text.ts';

/** Grows when a manifest changes its meaning; an agent finishes what an older operator's side began. */
export const manifestVersion = 1;

const hex64 = z.string().regex(/^[0-9a-f]{64}$/);
/** As podman takes it. */
export const secretNameSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,252}$/);

const absolutePath = z.string().startsWith('/');

const patchedFileSchema = z.strictObject({
  /** Absolute path of the file inside the image. */
  target: absolutePath,
  baseSha256: hex64,
  patchedSha256: hex64,
  /** Unified diffs in the order in which they apply. */
  diffs: z.array(z.strictObject({ name: z.string(), text: z.string() })).min(1),
});

/** What the rules judge the release by and the engine does not get: the host keeps it and acts on nothing of it. */
const reviewFactsSchema = z.strictObject({
  /** Of the shape's `model`; absent: none is named. */
  model: modelSchema.optional(),
  /** Of the image, by its digest, as far as it bears on the arguments; absent: nothing is known of it. */
  image: imageFactsSchema.optional(),
  /** Of the payload's `config.json`, as the shape expects it; absent: nothing is expected. */
  quantization: z.string().optional(),
  gpuArchitecture: z.string().optional(),
  /** Memory of each GPU in bytes; absent: not known. */
  gpuMemoryBytes: z.int().positive().optional(),
  /** Whether the host has a GPU in its processor; absent: not known. */
  integratedGpu: z.boolean().optional(),
  selinux: z.enum(['enforcing', 'permissive', 'disabled']).optional(),
  /** Folder of the host below which its payloads lie; absent: not known. */
  modelsRoot: absolutePath.optional(),
  /** Variable by which a hook that Python imports at its start keeps from starting itself; absent: there is no hook. */
  importGuard: z.string().optional(),
  /** Reasons by the id of the rule that they except the shape from. */
  exceptions: z.record(z.string(), z.string()),
});
export type ReviewFacts = z.infer<typeof reviewFactsSchema>;

/**
 * The rendered, content-addressed bundle of a shape: all that a host needs to serve it, to prove that it
 * does, and to come back to it later without network, Pulumi or the operator's machine.
 */
export const releaseSchema = z.strictObject({
  version: z.literal(manifestVersion),
  service: nameSchema,
  /** Name of the shape's stack, e.g. `glm-w4a16`. */
  shape: nameSchema,
  container: nameSchema,
  engineKind: z.enum(['vllm', 'r9v']),
  /** Hash of all that the engine gets, see `engineIdentityOf`. */
  engineIdentity: hex64,
  /** `registry/name@sha256:…`. */
  image: z.string(),
  /** What the image must begin with by itself; absent: nothing is known. */
  entrypoint: z.array(z.string()).optional(),
  /** What the engine's process must be found with: arguments after the image, in order. */
  arguments: z.array(z.string()),
  environment: z.record(z.string(), z.string()),
  /** Variables whose values are podman secrets of root's store, by name and version; never a value or its hash. */
  secrets: z.array(z.strictObject({ variable: z.string(), name: secretNameSchema })),
  /** Text of the service unit. */
  unit: z.string(),
  /** Text of the target that pulls the engine in at boot. */
  target: z.string(),
  patches: z.array(patchedFileSchema),
  /** Model directory on the host, and below it the file the engine is pointed at (GGUF) if any. */
  payload: z.strictObject({
    folder: absolutePath,
    entry: z.string().optional(),
    /** What must hold before a cutover; absent in releases of before there was a choice: the inventory. */
    verify: z.enum(['inventory', 'hashes']).optional(),
    expected: expectedPayloadSchema.optional(),
    /** Where hashes are to hold: so a payload that was replaced is another release. Absent: it is not sealed. */
    manifest: payloadManifestSchema.optional(),
  }),
  /** Further folders and files of the shape, read-only; absent: none, or a release of before they were looked at. */
  mounts: z
    .array(
      z.strictObject({
        source: absolutePath,
        target: absolutePath,
        expected: expectedPayloadSchema.optional(),
        manifest: payloadManifestSchema.optional(),
      }),
    )
    .optional(),
  /** Directories on the host that the engine may write; they survive every cutover. */
  stateFolders: z.array(absolutePath),
  port: z.int().min(1).max(65535),
  healthPath: z.string().startsWith('/'),
  /** First the one that responses carry, then the aliases (the host's `publicName`). */
  servedNames: z.array(z.string()).min(1),
  maxModelLength: z.int().positive(),
  /** Soft and hard limit that the engine's process must be found with. */
  memlock: z.union([z.literal('infinity'), z.int().nonnegative()]),
  /** Device files the engine needs, e.g. `/dev/kfd`. */
  deviceFiles: z.array(absolutePath),
  /** GPUs by PCI address, e.g. `0000:03:00.0`, whose memory must be free before the engine starts. */
  gpus: z.array(z.string()),
  /** Part of each GPU's memory that the engine claims, 0 to 1. */
  gpuMemoryUtilization: z.number().min(0).max(1),
  /** MemAvailable that must be there after the old engine is gone, in bytes; 0: no gate. */
  memoryGateBytes: z.int().nonnegative(),
  deadlines: z.strictObject({
    /** Waiting for running requests to end before the stop; 0: none. */
    drainSeconds: z.number().nonnegative(),
    stopSeconds: z.number().positive(),
    /** From start to the first healthy answer. */
    bootSeconds: z.number().positive(),
    /** Each check's whole answer. */
    checkSeconds: z.number().positive(),
    /** After the checks of a trial: the engine must still stand. */
    settleSeconds: z.number().nonnegative(),
  }),
  checks: z.array(checkSchema),
  /** Absent in releases of before there were rules. */
  review: reviewFactsSchema.optional(),
});
export type Release = z.infer<typeof releaseSchema>;

/**
 * Who wants the slot, and what was seen when it was asked for. The host refuses it if the epoch moved.
 * `token` is the readable form that a preview's diff shows; two equal tokens are the same wish.
 */
export const claimSchema = z.strictObject({
  token: z.string(),
  epoch: z.int().nonnegative(),
});
export type Claim = z.infer<typeof claimSchema>;

/** What the cutover resource sends to the host on standard input. */
export const manifestSchema = z.strictObject({
  version: z.literal(manifestVersion),
  claim: claimSchema,
  release: releaseSchema,
});
export type Manifest = z.infer<typeof manifestSchema>;

export function claimOf(seen: { epoch: number; occupant: string | undefined }, release: Release): Claim {
  const from = seen.occupant === undefined ? 'empty slot' : `occupant ${seen.occupant}`;
  return {
    epoch: seen.epoch,
    token: `${from}, epoch ${seen.epoch} → ${release.shape}, release ${shortId(releaseIdOf(release))}`,
  };
}

/** Same content, same id: SHA-256 of the canonical JSON, 64 hex digits. */
export function releaseIdOf(release: Release): string {
  return sha256(canonicalJson(release));
}

/** Twelve digits, as podman and git show theirs. */
export function shortId(id: string): string {
  return id.slice(0, 12);
}

export function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

/** JSON with the keys of every object in code-point order and without `undefined`. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
