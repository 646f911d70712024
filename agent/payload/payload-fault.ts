import type { Finding } from '../../shape/inspection.ts';

/** What is wrong with a payload: a finding, never the end of an inspection. */
export class PayloadFault extends Error {
  readonly severity: Finding['severity'];

  /** `refuse`: it is not what it claims to be. `warn`: the engine may serve it. `note`: it was not looked at. */
  constructor(severity: Finding['severity'], message: string) {
    super(message);
    this.name = 'PayloadFault';
    this.severity = severity;
  }
}

/** The time that a look may take is over: nothing further is read. */
export class LookIsOver extends PayloadFault {}
