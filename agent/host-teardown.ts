import { dirname } from 'node:path';
import { committedUnitFolder, libexecFolder, namesOf, stateRoot } from '../shape/names.ts';
import { dockerShimPath } from './host-files/docker-shim.ts';
import {
  isOurShim,
  logRoot,
  operatorLink,
  podmanSocket,
  readHostRecord,
  refuseWhileInUse,
  removeHostRecord,
  removeRecoveryUnit,
} from './host-setup.ts';
import type { Outside } from './outside.ts';
import { systemctl } from './systemd.ts';

/**
 * Takes away what `hostSetup` and the installation brought, the host program included. Payloads, state
 * directories of engines and images stay, and so do records and logs if there are any.
 * @returns a line for each thing that was removed or stays
 * @throws while a release holds the slot or a cutover runs; then nothing was touched
 */
export async function hostTeardown(outside: Outside, service: string): Promise<string[]> {
  await refuseWhileInUse(outside, service, 'removal of the host stack');
  const record = await readHostRecord(outside);
  const names = namesOf(service);

  await removeRecoveryUnit(outside, service);
  const report = [`${names.recoveryUnit}: removed`];
  if (await isOurShim(outside)) {
    await outside.removeDurably(dockerShimPath);
    report.push(`${dockerShimPath}: removed`);
  }
  if (record?.enabledSocket) {
    await systemctl(outside, ['disable', '--quiet', '--now', podmanSocket]);
    report.push(`${podmanSocket}: disabled`);
  }
  await removeHostRecord(outside);
  for (const folder of [
    names.stateFolder,
    stateRoot,
    names.logFolder,
    logRoot,
    committedUnitFolder,
    dirname(committedUnitFolder),
  ]) {
    report.push(await removeIfEmpty(outside, folder));
  }
  await outside.removeDurably(operatorLink);
  await outside.removeDurably(libexecFolder);
  report.push(`${libexecFolder}: removed`);
  return report;
}

async function removeIfEmpty(outside: Outside, folder: string): Promise<string> {
  const names = await outside.list(folder);
  if (names.length > 0) return `${folder}: stays with ${names.join(', ')}`;
  await outside.removeDurably(folder);
  return `${folder}: removed`;
}
