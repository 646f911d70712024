import * as z from 'zod';
import { forms } from '../forms.ts';

const repositoryPart = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$/;

/** A host's name with a dot or a port in it, by which podman tells it from a name of an image; or localhost. */
const registryHost =
  /^(?=localhost$|.*[.:])[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*(?::(?<port>[1-9][0-9]{0,4}))?$/;

/** Of registry and name together: github.com/distribution/reference, podman's reader of names, takes no more. */
const mostCharacters = 255;

/** The same reader refuses 64 hexadecimal digits that stand alone, for an image's id; nor are they a name elsewhere. */
const imageId = /^[0-9a-f]{64}$/;

const notRepository = 'must be registry/name in lower case';

const repositorySchema = z
  .string()
  .superRefine((repository, context) => {
    const refuse = (message: string, remedy: string): void =>
      context.addIssue({ code: 'custom', message, params: { remedy } });
    const [registry = '', ...name] = repository.split('/');
    if (repository.includes('@')) {
      refuse('must not hold a digest', 'move what follows the @ to the key digest');
    } else if (/[^!-~]/.test(repository)) {
      refuse(
        'must be letters of ASCII without blanks',
        'write it by hand: a letter in it only looks like one',
      );
    } else if (!/[.:]/.test(registry) && registry !== 'localhost') {
      refuse(
        'must begin with the registry: under systemd podman cannot ask which one is meant',
        `write the registry first, e.g. docker.io/${repository}`,
      );
    } else if (name.at(-1)?.includes(':') || (name.length === 0 && registry.includes(':'))) {
      refuse('must not hold a tag: the digest says which image it is', 'remove the tag');
    } else if (repository.length > mostCharacters) {
      refuse(`must be at most ${mostCharacters} characters`, 'podman takes no longer name: shorten it');
    } else if (Number(registryHost.exec(registry)?.groups?.port ?? 1) > 65_535) {
      refuse('must have a port from 1 to 65535', 'name the port on which the registry listens');
    } else if (imageId.test(name.at(-1) ?? '')) {
      refuse(
        'must not end in what looks like the id of an image',
        'name the image; the key digest says which',
      );
    } else if (
      !registryHost.test(registry) ||
      name.length === 0 ||
      !name.every((part) => repositoryPart.test(part))
    ) {
      refuse(notRepository, 'copy it from the output of podman image ls');
    }
  })
  .register(forms, { name: 'repository', limit: notRepository, examples: ['docker.io/tcclaviger/vllm'] });

const wholeDigest = /^sha256:[0-9a-f]{64}$/;
const notDigest = 'must be sha256: and 64 lower-case hexadecimal digits';
const digestSchema = z
  .string()
  .regex(wholeDigest, notDigest)
  .register(forms, { name: 'digest', limit: notDigest, examples: ['sha256:da4029666…'] });

const digits = /^[0-9a-f]{4,64}$/;
const notPrefix = 'must be 4 to 64 lower-case hexadecimal digits';
export const digestPrefixSchema = z
  .string()
  .regex(digits, notPrefix)
  .register(forms, { name: 'beginning of a digest', limit: notPrefix, examples: ['da4029666'] });

/** An image by digest. A tag names nothing for good, so there is no field for one. */
export const imageSchema = z
  .strictObject({
    repository: repositorySchema.describe('Registry host and name.'),
    digest: digestSchema.describe("The manifest's, as the registry has it."),
    recordedPrefix: digestPrefixSchema
      .optional()
      .describe('First digits of the digest that was qualified, against which the digest is checked.'),
  })
  .superRefine(({ digest, recordedPrefix = '' }, context) => {
    const isWhole = wholeDigest.test(digest) && (recordedPrefix === '' || digits.test(recordedPrefix));
    if (!isWhole || digest.startsWith(`sha256:${recordedPrefix}`)) return;
    context.addIssue({
      code: 'custom',
      path: ['digest'],
      message: `must begin with sha256:${recordedPrefix}, the digest on record`,
      params: {
        remedy:
          'set the digest on record; if another image is meant, change recordedPrefix with it, or take that out',
      },
    });
  });
export type ImageConfig = z.infer<typeof imageSchema>;

/** `repository@digest`: the only form in which an image is named to podman. */
export function imageReference(image: ImageConfig): string {
  return `${image.repository}@${image.digest}`;
}
