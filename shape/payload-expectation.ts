import * as z from 'zod';
import { forms } from './forms.ts';
import { byteSizeSchema } from './quantities.ts';
import { hostPathSchema } from './text.ts';

const notDigest = 'must be the first 8 to 64 lower-case hex digits of a SHA-256';

const digestPrefixSchema = z
  .string()
  .regex(/^[0-9a-f]{8,64}$/, notDigest)
  .register(forms, { name: 'SHA-256', limit: notDigest, examples: ['b038e1d9'] });

const count = z.int().nonnegative();

/** What is on record of a folder of weights, so that another one in its place is seen. */
export const payloadExpectationSchema = z.strictObject({
  shards: count.optional().describe('Files of the numbered set, `…-00001-of-00034.…`.'),
  extraFiles: count.optional().describe('Safetensors files beside the numbered set.'),
  tensors: count
    .optional()
    .describe("Tensors: those of the index's weight map, without an index those of the files."),
  bytes: count.optional().describe('Bytes of all files with weights together.'),
  size: byteSizeSchema
    .optional()
    .describe('The same, as it is rounded on record: more than 3 % beside it is told and not refused.'),
  files: z
    .record(
      hostPathSchema,
      z.strictObject({
        bytes: count.optional().describe('Size of the file.'),
        sha256: digestPrefixSchema
          .optional()
          .describe(
            'Of the file, or how it begins. An inventory does not read it; a verification of hashes does.',
          ),
      }),
    )
    .optional()
    .describe('Single files by their path below the folder; of a mounted file by its name.'),
});
export type PayloadExpectation = z.infer<typeof payloadExpectationSchema>;

/** The same in a release, whose values are plain. */
export const expectedPayloadSchema = payloadExpectationSchema
  .omit({ size: true })
  .extend({ sizeBytes: count.optional() });
export type ExpectedPayload = z.infer<typeof expectedPayloadSchema>;

export function expectedPayload({ size, ...rest }: PayloadExpectation): ExpectedPayload {
  return { ...rest, ...(size && { sizeBytes: size.bytes }) };
}
