import * as z from 'zod';
import {
  type Outcome,
  outcomeSchema,
  type SlotState,
  slotStateSchema,
  type Transaction,
  transactionSchema,
} from '../shape/inspection.ts';
import { jsonOrUndefined } from '../shape/json.ts';
import { namesOf } from '../shape/names.ts';
import { type Claim, claimSchema, type Release, releaseIdOf, releaseSchema } from '../shape/release.ts';
import type { Outside } from './outside.ts';

const quarantineSchema = z.strictObject({ at: z.string(), stage: z.string(), message: z.string() });
export type Quarantine = z.infer<typeof quarantineSchema>;

const preflightSchema = z.array(z.strictObject({ check: z.string(), at: z.string(), result: z.string() }));
export type PreflightResults = z.infer<typeof preflightSchema>;

/** What a service's slot remembers on its host. Every write is durable before the act that it announces. */
export class Store {
  readonly #outside: Outside;
  readonly #folder: string;

  constructor(outside: Outside, service: string) {
    this.#outside = outside;
    this.#folder = namesOf(service).stateFolder;
  }

  async slot(): Promise<SlotState> {
    const empty: SlotState = {
      version: 1,
      epoch: 0,
      changed: 'nobody yet',
      occupant: null,
      previousReleaseId: null,
    };
    return (await this.#read('slot.json', slotStateSchema)) ?? empty;
  }

  saveSlot(slot: SlotState): Promise<void> {
    return this.#write('slot.json', slot);
  }

  transaction(): Promise<Transaction | undefined> {
    return this.#read('transaction.json', transactionSchema);
  }

  saveTransaction(transaction: Transaction): Promise<void> {
    return this.#write('transaction.json', transaction);
  }

  async saveRelease(release: Release): Promise<string> {
    const id = releaseIdOf(release);
    await this.#outside.makeFolder(`${this.#folder}/releases`);
    await this.#write(`releases/${id}.json`, release);
    return id;
  }

  /** The stored release, or an error: a release that is not what its name says is not gone back to. */
  async release(id: string): Promise<Release> {
    const file = `releases/${id}.json`;
    const release = await this.#read(file, releaseSchema);
    if (release === undefined) throw new Error(`${this.#folder}/${file}: no such release on this host`);
    if (releaseIdOf(release) !== id)
      throw new Error(`${this.#folder}/${file}: content does not match its name`);
    return release;
  }

  async releaseIds(): Promise<string[]> {
    return idsOf(await this.#outside.list(`${this.#folder}/releases`));
  }

  removeRelease(id: string): Promise<void> {
    return this.#outside.removeDurably(`${this.#folder}/releases/${id}.json`);
  }

  /** The claim under which a release last held the slot: it gets the same one back when it is restored. */
  claim(releaseId: string): Promise<Claim | undefined> {
    return this.#read(`claims/${releaseId}.json`, claimSchema);
  }

  async saveClaim(releaseId: string, claim: Claim): Promise<void> {
    await this.#outside.makeFolder(`${this.#folder}/claims`);
    await this.#write(`claims/${releaseId}.json`, claim);
  }

  quarantine(releaseId: string): Promise<Quarantine | undefined> {
    return this.#read(`quarantine/${releaseId}.json`, quarantineSchema);
  }

  async quarantined(): Promise<string[]> {
    return idsOf(await this.#outside.list(`${this.#folder}/quarantine`));
  }

  async saveQuarantine(releaseId: string, quarantine: Quarantine): Promise<void> {
    await this.#outside.makeFolder(`${this.#folder}/quarantine`);
    await this.#write(`quarantine/${releaseId}.json`, quarantine);
  }

  liftQuarantine(releaseId: string): Promise<void> {
    return this.#outside.removeDurably(`${this.#folder}/quarantine/${releaseId}.json`);
  }

  async preflight(releaseId: string): Promise<PreflightResults> {
    return (await this.#read(`preflight/${releaseId}.json`, preflightSchema)) ?? [];
  }

  async savePreflight(releaseId: string, results: PreflightResults): Promise<void> {
    await this.#outside.makeFolder(`${this.#folder}/preflight`);
    await this.#write(`preflight/${releaseId}.json`, results);
  }

  /** Outcomes of all transactions that ended, oldest first. A torn last line (power cut) is passed over. */
  async history(): Promise<Outcome[]> {
    const text = (await this.#outside.readText(`${this.#folder}/history.jsonl`)) ?? '';
    return text.split('\n').flatMap((line) => {
      const parsed = outcomeSchema.safeParse(jsonOrUndefined(line));
      return parsed.success ? [parsed.data] : [];
    });
  }

  /** On a line of its own even after a torn one. */
  addToHistory(outcome: Outcome): Promise<void> {
    return this.#outside.append(`${this.#folder}/history.jsonl`, `\n${JSON.stringify(outcome)}\n`);
  }

  async #read<T>(file: string, schema: z.ZodType<T>): Promise<T | undefined> {
    const path = `${this.#folder}/${file}`;
    const text = await this.#outside.readText(path);
    if (text === undefined) return undefined;
    const parsed = schema.safeParse(jsonOrUndefined(text));
    if (parsed.success) return parsed.data;
    throw new Error(
      `${path} is damaged (${text.length} characters, ${z.prettifyError(parsed.error)}): nothing was touched. ` +
        'Put back a sound copy; or move it away, then what runs counts as foreign until it is stopped by hand',
    );
  }

  #write(file: string, content: unknown): Promise<void> {
    return this.#outside.writeDurably(`${this.#folder}/${file}`, `${JSON.stringify(content, null, 2)}\n`);
  }
}

function idsOf(files: readonly string[]): string[] {
  return files.filter((file) => file.endsWith('.json')).map((file) => file.slice(0, -'.json'.length));
}
