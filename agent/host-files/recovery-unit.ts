import { namesOf, slotProgram } from '../../shape/names.ts';

/**
 * At boot, closes the record of a cutover that a reboot or a power cut interrupted. Its start is done as soon
 * as it runs (`Type=exec`), so neither the boot nor a unit that it waits for can wait for it.
 */
export function recoveryUnit(service: string): string {
  const names = namesOf(service);
  return `[Unit]
Description=Closes the record of an interrupted cutover of ${service}
After=${names.target}
ConditionPathExists=${names.stateFolder}/transaction.json

[Service]
Type=exec
ExecStart=${slotProgram} recover --service ${service}

[Install]
WantedBy=multi-user.target
`;
}
