import * as z from 'zod';
import { nameSchema } from '../../shape/text.ts';
import type { HashContext } from './hash-job.ts';
import { PayloadDiffers, sealedTreeSchema, sealTree, verifyTree } from './sealed-payload.ts';

/** What `slot payload seal` and `slot payload verify` get on standard input. */
export const payloadRequestSchema = z.strictObject({
  service: nameSchema,
  trees: z.array(sealedTreeSchema).min(1),
});
export type PayloadRequest = z.infer<typeof payloadRequestSchema>;

/**
 * Carries out what an operator asks of payloads, outside of the slot's lock.
 *
 * @returns a text for standard output: of a seal the manifests by root, as JSON; undefined: something differs, which
 *   was said
 */
export async function payloadCommand(
  verb: 'seal' | 'verify',
  context: HashContext,
  trees: PayloadRequest['trees'],
): Promise<string | undefined> {
  const results: unknown[] = [];
  let differs = false;
  for (const tree of trees) {
    try {
      if (verb === 'seal') results.push({ root: tree.root, manifest: await sealTree(context, tree) });
      else await context.say(await verifyTree(context, tree));
    } catch (error) {
      if (!(error instanceof PayloadDiffers)) throw error;
      await context.say(error.message);
      differs = true;
    }
  }
  if (differs) return undefined;
  return verb === 'seal' ? `${JSON.stringify(results)}\n` : '';
}
