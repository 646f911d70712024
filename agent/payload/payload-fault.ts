import type { Finding } from '../../shape/inspection.ts';

/** Why a payload cannot be read: a finding, never the end of an inspection. */
export class PayloadFault extends Error {
  readonly severity: Finding['severity'];

  /** `refuse`: it is not what it claims to be. `note`: it may well be, but is not read in a quick look. */
  constructor(severity: Finding['severity'], message: string) {
    super(message);
    this.name = 'PayloadFault';
    this.severity = severity;
  }
}
