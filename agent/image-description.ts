import * as z from 'zod';
import { beginsAs, type ImageDescription, imageDescriptionSchema } from '../shape/engines/image-knowledge.ts';
import { jsonOrUndefined } from '../shape/json.ts';
import type { Release } from '../shape/release.ts';
import type { Outside } from './outside.ts';
import { imageEntrypoint, imageState } from './podman.ts';
import { runThrowAway } from './throw-away.ts';
import { describeParser } from './vllm-parser.ts';

/**
 * What an image tells of its own command line, asked in a throw-away container while what serves goes on.
 *
 * @throws Error where the image is not there by this digest, or cannot tell
 */
export async function describeImage(
  outside: Outside,
  { image, engineKind }: Pick<Release, 'image' | 'engineKind'>,
): Promise<ImageDescription> {
  const state = await imageState(outside, image);
  if (state !== 'present') throw new Error(`${image} is ${state} on this host; slot preflight pulls it`);
  if (engineKind !== 'vllm') {
    throw new Error(`${image} has no parser that answers without a model; write images/<name>.yaml by hand`);
  }
  const entrypoint = await imageEntrypoint(outside, image);
  const { exitCode, stdout, stderr } = await runThrowAway(outside, {
    image,
    entrypoint: 'python3',
    arguments: ['-c', describeParser],
  });
  if (exitCode !== 0) {
    const reason = stderr.trim().split('\n').pop() ?? '';
    throw new Error(`${image} cannot tell what it takes (exit ${exitCode}): ${reason}`);
  }
  const told = imageDescriptionSchema.omit({ entrypoint: true }).safeParse(jsonOrUndefined(stdout));
  if (!told.success) throw new Error(`${image} answered in another form: ${z.prettifyError(told.error)}`);
  return { entrypoint, ...told.data };
}

/** Why the image does not begin as the release's arguments assume; undefined: it does, or nothing is assumed. */
export async function entrypointFault(
  outside: Outside,
  { image, entrypoint: wanted }: Pick<Release, 'image' | 'entrypoint'>,
): Promise<string | undefined> {
  if (wanted === undefined) return undefined;
  const actual = await imageEntrypoint(outside, image);
  return beginsAs(actual, wanted)
    ? undefined
    : `the image begins with ${actual.length === 0 ? 'nothing of its own' : JSON.stringify(actual)}, ` +
        `the arguments are made for ${JSON.stringify(wanted)}`;
}
