import type { Finding } from '../../shape/inspection.ts';
import { PayloadFault } from './payload-fault.ts';

/** Findings of one kind that are told one by one: a folder of a thousand damaged files is damaged. */
const mostOfSeverity = 12;

/** What is found in one folder, told under its name. */
export class Findings {
  readonly #found: Finding[] = [];
  readonly #left = { refuse: 0, warn: 0, note: 0 };
  readonly #subject: string;

  constructor(subject: string) {
    this.#subject = subject;
  }

  get all(): readonly Finding[] {
    const left = Object.entries(this.#left) as [Finding['severity'], number][];
    return [
      ...this.#found,
      ...left
        .filter(([, count]) => count > 0)
        .map(([severity, count]) => ({
          severity,
          subject: this.#subject,
          message: `${count} more of this kind`,
        })),
    ];
  }

  /** Whether it is said already why something is not known: what refuses, or what a quick look passed over. */
  get explains(): boolean {
    return this.#found.some(({ severity }) => severity !== 'warn');
  }

  add(severity: Finding['severity'], message: string): void {
    const finding = { severity, subject: this.#subject, message };
    if (this.#found.some((other) => other.severity === severity && other.message === message)) return;
    if (this.#found.filter((other) => other.severity === severity).length >= mostOfSeverity)
      this.#left[severity] += 1;
    else this.#found.push(finding);
  }

  /** What the look gives; undefined where it fails: what cannot be looked at, whatever the reason, is not vouched for. */
  async attempt<T>(look: () => Promise<T>): Promise<T | undefined> {
    try {
      return await look();
    } catch (error) {
      this.add(error instanceof PayloadFault ? error.severity : 'refuse', (error as Error).message);
      return undefined;
    }
  }
}
