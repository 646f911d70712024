import * as z from 'zod';
import { committedUnitFolder, namesOf, slotProgram, stateRoot } from '../shape/names.ts';
import { nameSchema } from '../shape/text.ts';
import { dockerShim, dockerShimPath, ownershipMark } from './host-files/docker-shim.ts';
import { recoveryUnit } from './host-files/recovery-unit.ts';
import type { Outside } from './outside.ts';
import { Store } from './store.ts';
import { isEnabled, systemctl } from './systemd.ts';

/** What the host stack sends to `slot host-setup` on standard input. */
export const hostSetupSchema = z.strictObject({ service: nameSchema });
export type HostSetup = z.infer<typeof hostSetupSchema>;

export const operatorLink = '/usr/local/bin/slot';
export const podmanSocket = 'podman.socket';
/** Logs of engines hold what people asked: root alone reads them. */
export const logRoot = '/var/log/slot';

const recordPath = `${stateRoot}/host.json`;
const recordSchema = z.strictObject({
  version: z.literal(1),
  service: z.string(),
  /** Whether the tear-down has to disable podman's socket, because it was not enabled before us. */
  enabledSocket: z.boolean(),
});
export type HostRecord = z.infer<typeof recordSchema>;

/**
 * Makes a host ready for a service: folders, the unit that recovers at boot, podman's socket, the docker shim.
 * Repeating it changes nothing. It neither starts nor stops a unit other than podman's socket.
 * @returns a line for each thing that is there now
 * @throws when something of another owner is in the way
 */
export async function hostSetup(outside: Outside, { service }: HostSetup): Promise<string[]> {
  const names = namesOf(service);
  const former = await readHostRecord(outside);
  await refuseForeignFiles(outside);
  if (former !== undefined && former.service !== service) await giveUpService(outside, former.service);

  await makeFolder(outside, stateRoot, '0755');
  await makeFolder(outside, names.stateFolder, '0700');
  await makeFolder(outside, logRoot, '0700');
  await makeFolder(outside, names.logFolder, '0700');
  await makeFolder(outside, committedUnitFolder, '0755');

  const socketWasEnabled = (await isEnabled(outside, podmanSocket)) === 'enabled';
  const record: HostRecord = {
    version: 1,
    service,
    enabledSocket: former?.enabledSocket ?? !socketWasEnabled,
  };
  await outside.writeDurably(recordPath, `${JSON.stringify(record, null, 2)}\n`);

  const unitPath = recoveryUnitPath(service);
  await outside.writeDurably(unitPath, recoveryUnit(service));
  await systemctl(outside, ['daemon-reload']);
  await systemctl(outside, ['enable', '--quiet', names.recoveryUnit]);
  await systemctl(outside, ['enable', '--quiet', '--now', podmanSocket]);

  await outside.writeDurably(dockerShimPath, dockerShim);
  await must(outside, 'chmod', ['0755', dockerShimPath]);
  await must(outside, 'ln', ['-sfn', slotProgram, operatorLink]);
  await restoreLabels(outside, [unitPath, dockerShimPath, operatorLink, stateRoot, logRoot]);

  return [
    `${operatorLink}: the host program`,
    `${names.stateFolder}: records and releases`,
    `${names.logFolder}: logs of engines`,
    `${names.recoveryUnit}: closes an interrupted cutover at boot`,
    `${podmanSocket}: ${record.enabledSocket ? 'enabled by us' : 'was enabled before'}`,
    `${dockerShimPath}: root's podman for image pulls`,
  ];
}

export async function readHostRecord(outside: Outside): Promise<HostRecord | undefined> {
  const text = await outside.readText(recordPath);
  if (text === undefined) return undefined;
  const parsed = recordSchema.safeParse(JSON.parse(text));
  if (parsed.success) return parsed.data;
  throw new Error(`${recordPath}: not what this agent wrote: ${z.prettifyError(parsed.error)}`);
}

export async function removeHostRecord(outside: Outside): Promise<void> {
  await outside.removeDurably(recordPath);
}

export function recoveryUnitPath(service: string): string {
  return `${committedUnitFolder}/${namesOf(service).recoveryUnit}`;
}

/** @throws when a release holds the slot of the service, or a cutover runs */
export async function refuseWhileInUse(outside: Outside, service: string, wish: string): Promise<void> {
  const { occupant } = await new Store(outside, service).slot();
  if (occupant !== null) {
    throw new Error(
      `${wish}: refused, nothing touched: ${service} is held by ${occupant.shape}; ` +
        `destroy that shape's stack first (\`pulumi destroy -s ${occupant.shape}\`)`,
    );
  }
  const { cutoverUnit } = namesOf(service);
  const { stdout } = await outside.run('systemctl', ['is-active', cutoverUnit]);
  if (['active', 'activating', 'deactivating'].includes(stdout.trim())) {
    throw new Error(`${wish}: refused, nothing touched: a cutover runs (${cutoverUnit}); wait for its end`);
  }
}

export async function isOurShim(outside: Outside): Promise<boolean> {
  return (await outside.readText(dockerShimPath))?.includes(ownershipMark) === true;
}

async function refuseForeignFiles(outside: Outside): Promise<void> {
  if ((await outside.kindOf(dockerShimPath)) !== 'absent' && !(await isOurShim(outside))) {
    throw new Error(`${dockerShimPath} is not ours and is not overwritten; move it away`);
  }
  const link = await outside.readLink(operatorLink);
  if (link !== slotProgram && (await outside.kindOf(operatorLink)) !== 'absent') {
    throw new Error(`${operatorLink} is not ours and is not overwritten; move it away`);
  }
}

/** The service was renamed: its old units must not come up beside the new ones. Its records stay. */
async function giveUpService(outside: Outside, service: string): Promise<void> {
  await refuseWhileInUse(outside, service, `rename of the service ${service}`);
  await removeRecoveryUnit(outside, service);
}

export async function removeRecoveryUnit(outside: Outside, service: string): Promise<void> {
  if ((await outside.kindOf(recoveryUnitPath(service))) !== 'absent') {
    await systemctl(outside, ['disable', '--quiet', namesOf(service).recoveryUnit]);
    await outside.removeDurably(recoveryUnitPath(service));
  }
  await systemctl(outside, ['daemon-reload']);
}

async function makeFolder(outside: Outside, path: string, mode: string): Promise<void> {
  await must(outside, 'install', ['-d', '-o', 'root', '-g', 'root', '-m', mode, path]);
}

/** A file that was made under another label may not be executed, or not be read by systemd. */
async function restoreLabels(outside: Outside, paths: readonly string[]): Promise<void> {
  if ((await outside.kindOf('/sys/fs/selinux/enforce')) === 'absent') return;
  await must(outside, 'restorecon', ['-RF', ...paths]);
}

async function must(outside: Outside, command: string, args: readonly string[]): Promise<void> {
  const result = await outside.run(command, args);
  if (result.exitCode !== 0) throw new Error(`${command} ${args.join(' ')}: ${result.stderr.trim()}`);
}
