import type { Store } from './store.ts';

/** Releases that must stay on the host, each with the reason. */
export async function retainedReleases(store: Store): Promise<Map<string, string>> {
  const retained = new Map<string, string>();
  const slot = await store.slot();
  const transaction = await store.transaction();
  if (transaction !== undefined && transaction.outcome === undefined) {
    retained.set(transaction.releaseId, 'a transaction is under way for it');
    if (transaction.previousReleaseId !== null) {
      retained.set(transaction.previousReleaseId, 'a transaction may have to come back to it');
    }
  }
  if (slot.previousReleaseId !== null) retained.set(slot.previousReleaseId, 'slot rollback goes back to it');
  if (slot.occupant !== null) retained.set(slot.occupant.releaseId, 'the unit refers to it');
  return retained;
}
