import * as z from 'zod';

/* What the operator's side asks a host about the files of images, and what it is told. */

const insidePath = z.string().regex(/^\/[^\0]*[^\0/]$/, 'must be an absolute path of a file');

export const imageFilesRequestSchema = z.strictObject({
  images: z.array(
    z.strictObject({
      /** `registry/name@sha256:…`. */
      image: z.string(),
      /** Whether an image that is not there is pulled; else it is told that it is not. */
      pull: z.boolean(),
      files: z.array(
        z.strictObject({
          /** Absolute path inside the image. */
          path: insidePath,
          /** What the file is expected to be: where it is not there, a file with this hash is looked for. */
          sha256: z.string().optional(),
        }),
      ),
    }),
  ),
});
export type ImageFilesRequest = z.infer<typeof imageFilesRequestSchema>;

/** Bytes of a file as base64. */
const content = z.string();

const imageFileSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('file'), path: insidePath, content }),
  z.strictObject({
    kind: z.literal('absent'),
    path: insidePath,
    /** Files of the same Python package with the same name, or with the expected content. */
    elsewhere: z.array(z.strictObject({ path: insidePath, content })),
  }),
  z.strictObject({
    kind: z.literal('not regular'),
    path: insidePath,
    /** E.g. `a folder`, `a link to model_v2.py`. */
    what: z.string(),
  }),
]);
export type ImageFile = z.infer<typeof imageFileSchema>;

const imageAnswerSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('read'), image: z.string(), files: z.array(imageFileSchema) }),
  z.strictObject({ kind: z.literal('not read'), image: z.string(), reason: z.string() }),
]);
export type ImageAnswer = z.infer<typeof imageAnswerSchema>;

export const imageFilesAnswerSchema = z.strictObject({ images: z.array(imageAnswerSchema) });

export const compileRequestSchema = z.strictObject({
  image: z.string(),
  /** For messages: absolute path of the file inside the image. */
  target: insidePath,
  source: content,
});
export type CompileRequest = z.infer<typeof compileRequestSchema>;

export const compileAnswerSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('compiles') }),
  z.strictObject({ kind: z.literal('does not compile'), reason: z.string() }),
  z.strictObject({ kind: z.literal('not asked'), reason: z.string() }),
]);
export type CompileAnswer = z.infer<typeof compileAnswerSchema>;
