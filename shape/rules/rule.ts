import type { Measured } from '../measured.ts';
import type { Release } from '../release.ts';
import type { RuleId } from './rule-ids.ts';

export interface RuleSubject {
  readonly release: Release;
  /** What a host knows better than a file; undefined: the host was not asked. */
  readonly measured: Measured | undefined;
}

/** What is said of something that the record or common sense knows to be broken, as data. */
export interface Verdict<Id extends string = string> {
  readonly id: Id;
  /** `refuse`: nothing is touched unless the shape is excepted. `warn`: it is said and goes on. */
  readonly severity: 'refuse' | 'warn';
  /** Why it must not be, in one sentence. */
  readonly reason: string;
  /** Where it was measured or is documented. */
  readonly evidence: string;
  /** What to change so that the rule holds. */
  readonly remedy: string;
}

/** A rule that judges a release by all that the engine would get. */
export interface Rule extends Verdict<RuleId> {
  /** What is found in this release, e.g. `--kv-cache-dtype fp8`; undefined: the rule is silent. */
  examine(subject: RuleSubject): string | undefined;
}
