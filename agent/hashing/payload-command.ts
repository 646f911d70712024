import type { PayloadRequest, SealedPayloads } from '../../shape/payload-request.ts';
import type { HashContext } from './hash-job.ts';
import { PayloadDiffers, sealTree, verifyTree } from './sealed-payload.ts';

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
  const sealed: SealedPayloads = [];
  let differs = false;
  for (const tree of trees) {
    try {
      if (verb === 'seal') sealed.push({ root: tree.root, manifest: await sealTree(context, tree) });
      else await context.say(await verifyTree(context, tree));
    } catch (error) {
      if (!(error instanceof PayloadDiffers)) throw error;
      await context.say(error.message);
      differs = true;
    }
  }
  if (differs) return undefined;
  return verb === 'seal' ? `${JSON.stringify(sealed)}\n` : '';
}
