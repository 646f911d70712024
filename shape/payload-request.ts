import * as z from 'zod';
import { expectedPayloadSchema } from './payload-expectation.ts';
import { payloadManifestSchema } from './payload-manifest.ts';
import { nameSchema } from './text.ts';

/** What a hub says of a file: the SHA-256 of its content, or, of one that it keeps in git itself, git's hash. */
const hubFileSchema = z.strictObject({
  name: z.string(),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  /** SHA-1 of the content behind git's own header. */
  gitBlob: z
    .string()
    .regex(/^[0-9a-f]{40}$/)
    .optional(),
  /** In bytes. */
  size: z.int().nonnegative().optional(),
});
export type HubFile = z.infer<typeof hubFileSchema>;

const sealedTreeSchema = z.strictObject({
  /** A payload's folder on the host, or a folder or file that is mounted beside it. */
  root: z.string().startsWith('/'),
  manifest: payloadManifestSchema.optional(),
  expected: expectedPayloadSchema.optional(),
  /** For a seal. */
  hub: z.array(hubFileSchema).optional(),
});
export type SealedTree = z.infer<typeof sealedTreeSchema>;

/** What the host's `slot payload` gets on standard input. */
export const payloadRequestSchema = z.strictObject({
  service: nameSchema,
  trees: z.array(sealedTreeSchema).min(1),
});
export type PayloadRequest = z.infer<typeof payloadRequestSchema>;

/** What it answers to a seal. */
export const sealedPayloadsSchema = z.array(
  z.strictObject({ root: z.string(), manifest: payloadManifestSchema }),
);
export type SealedPayloads = z.infer<typeof sealedPayloadsSchema>;
