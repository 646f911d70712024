/**
 * Every name that is derived from the service's name, in one place: a rename of the service is a change of
 * one configured value.
 */
export interface ServiceNames {
  readonly service: string;
  readonly unit: string;
  readonly target: string;
  /** Transient unit that runs a transaction. systemd allows one unit of a name: it is the slot's lock. */
  readonly cutoverUnit: string;
  /** Closes the record of an interrupted transaction at boot. */
  readonly recoveryUnit: string;
  readonly committedUnitPath: string;
  /** The unit under trial: /run wins over /usr/local and is gone after a reboot. */
  readonly trialUnitPath: string;
  readonly targetPath: string;
  readonly stateFolder: string;
  readonly logFolder: string;
  /** Holds the id of the engine's container while there is one. */
  readonly containerIdPath: string;
  container(shortName: string): string;
  /** podman's secret that holds this version of a variable's value. */
  secret(variable: string, version: string): string;
  /** The patched copy of an image's file: named by its content, never edited in place. */
  patchedFile(sha256: string, target: string): string;
}

/** Label of the engine's container that holds its release's engine identity. */
export const identityLabel = 'slot.identity';

export const committedUnitFolder = '/usr/local/lib/systemd/system';
export const trialUnitFolder = '/run/systemd/system';
export const libexecFolder = '/usr/local/libexec/slot';
export const stateRoot = '/var/lib/slot';
/** Path of the host program on the host. */
export const slotProgram = `${libexecFolder}/slot`;

export function namesOf(service: string): ServiceNames {
  const unit = `${service}.service`;
  const target = `${service}.target`;
  return {
    service,
    unit,
    target,
    cutoverUnit: `${service}-cutover.service`,
    recoveryUnit: `${service}-recovery.service`,
    committedUnitPath: `${committedUnitFolder}/${unit}`,
    trialUnitPath: `${trialUnitFolder}/${unit}`,
    targetPath: `${committedUnitFolder}/${target}`,
    stateFolder: `${stateRoot}/${service}`,
    logFolder: `/var/log/slot/${service}`,
    containerIdPath: `/run/${service}.cid`,
    container: (shortName) => `${service}-${shortName}`,
    secret: (variable, version) => `${service}-${variable}-${version}`,
    patchedFile: (sha256, target) => `${stateRoot}/${service}/patched/${sha256}/${target.split('/').at(-1)}`,
  };
}
