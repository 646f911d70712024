import * as z from 'zod';

const repositoryPart = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$/;

/** An image by digest. A tag names nothing for good, so there is no field for one. */
export const imageSchema = z
  .strictObject({
    /** Registry host and name, e.g. `docker.io/tcclaviger/vllm`. */
    repository: z.string().superRefine((repository, context) => {
      const refuse = (message: string, remedy: string): void =>
        context.addIssue({ code: 'custom', message, params: { remedy } });
      const [registry = '', ...name] = repository.split('/');
      if (repository.includes('@')) {
        refuse('must not hold a digest', 'move what follows the @ to the key digest');
      } else if (!/[.:]/.test(registry) && registry !== 'localhost') {
        refuse(
          'must begin with the registry: under systemd podman cannot ask which one is meant',
          `write the registry first, e.g. docker.io/${repository}`,
        );
      } else if (name.at(-1)?.includes(':')) {
        refuse('must not hold a tag: the digest says which image it is', 'remove the tag');
      } else if (name.length === 0 || !name.every((part) => repositoryPart.test(part))) {
        refuse('must be registry/name in lower case', 'copy it from the output of podman image ls');
      }
    }),
    /** `sha256:` and 64 lower-case hexadecimal digits. */
    digest: z.string().regex(/^sha256:[0-9a-f]{64}$/, {
      error: 'must be sha256: and 64 lower-case hexadecimal digits',
    }),
    /** First digits of the digest that was qualified, against which the supplied digest is checked. */
    recordedPrefix: z
      .string()
      .regex(/^[0-9a-f]{4,64}$/, 'must be 4 to 64 lower-case hexadecimal digits')
      .optional(),
  })
  .superRefine(({ digest, recordedPrefix = '' }, context) => {
    if (digest.startsWith(`sha256:${recordedPrefix}`)) return;
    context.addIssue({
      code: 'custom',
      path: ['digest'],
      message: `must begin with sha256:${recordedPrefix}, the digest on record`,
      params: { operatorSupplied: true },
    });
  });
export type ImageConfig = z.infer<typeof imageSchema>;

/** `repository@digest`: the only form in which an image is named to podman. */
export function imageReference(image: ImageConfig): string {
  return `${image.repository}@${image.digest}`;
}
