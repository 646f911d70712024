import { randomBytes } from 'node:crypto';
import { basename, join } from 'node:path/posix';
import * as z from 'zod';
import { sizeText } from '../../shape/memory/amounts.ts';
import { namesOf } from '../../shape/names.ts';
import type { FileStatus, Outside } from '../outside.ts';
import { counted } from '../payload/wording.ts';
import { isUnderWay, showUnit } from '../systemd.ts';
import type { Hashing, HashResult } from './hash-files.ts';
import { HashMemo, isSameFile, rootKey } from './hash-memo.ts';

/** In memory, so that a full disk keeps no answer back; a reading does not outlive a boot. */
const runFolder = '/run/slot';

const fileSchema = z.strictObject({
  name: z.string(),
  path: z.string(),
  /** What it is expected to hash to: a file that does not is told at once. */
  expected: z.string().optional(),
});
/** A file to be read. */
export type WantedFile = z.infer<typeof fileSchema>;

const requestSchema = z.strictObject({ root: z.string(), files: z.array(fileSchema) });

const outcomeSchema = z.record(
  z.string(),
  z.union([z.strictObject({ sha256: z.string() }), z.strictObject({ error: z.string() })]),
);

/** Seconds between two lines of progress, and of silence of the disk before a reading is given up. */
const tellSeconds = 10;
const stuckSeconds = 300;

/** Remembered at least this often, in seconds: what is read again after a kill. */
const saveSeconds = 2;

/**
 * What the unit may take of a host whose engine serves. The page cache is charged to whoever reads: bounded, it takes
 * its own pages back and leaves those of others, so neither the engine that runs nor the next boot is any colder for it,
 * nor warmer: on a virtual machine of 2 GiB a reading of 1.9 GB left a file of 524 MB in the cache whole where it was
 * bounded (at 256 MiB), and without a bound took a quarter of it away. Nothing but records can be written.
 */
const unitProperties = (service: string): readonly string[] => [
  'Type=exec',
  'Nice=19',
  'CPUWeight=10',
  'IOSchedulingClass=idle',
  'IOWeight=10',
  'MemoryHigh=2G',
  'ProtectSystem=strict',
  `ReadWritePaths=${namesOf(service).stateFolder} ${runFolder}`,
];

export interface HashContext {
  readonly outside: Outside;
  readonly service: string;
  /** Told what happens, a line at a time. */
  say(line: string): Promise<void>;
}

/**
 * Reads files of one payload in a transient unit, which goes on when whoever asked is gone; the unit's name belongs to
 * the payload, so there is one reading of it at a time. Where one is under way it is followed first.
 *
 * @returns what each file hashes to; undefined: another reading was followed to its end, look at the memo again
 * @throws Error when the unit ends without an answer
 */
export async function readInUnit(
  context: HashContext,
  root: string,
  files: readonly WantedFile[],
): Promise<ReadonlyMap<string, HashResult> | undefined> {
  const { outside, service, say } = context;
  const unit = hashingUnit(service, root);
  const folder = `${runFolder}/${service}`;
  const running = await requestUnderWay(outside, unit);
  if (running !== undefined) {
    await say(`${root} is being read already, by ${unit}: following it`);
    await follow(context, unit, `${folder}/${running}`);
    return undefined;
  }
  await outside.makeFolder(folder);
  const request = `${rootKey(root)}-${randomBytes(4).toString('hex')}`;
  await outside.writeDurably(`${folder}/${request}.request.json`, JSON.stringify({ root, files }));
  const started = await outside.run('systemd-run', [
    ...[`--unit=${unit}`, '--collect', '--quiet', `--description=${descriptionPrefix}${request}`],
    ...unitProperties(service).map((property) => `--property=${property}`),
    ...[process.execPath, process.argv[1] ?? '', 'hash', `--service=${service}`, `--request=${request}`],
  ]);
  if (started.exitCode !== 0) {
    // Somebody else was quicker.
    if ((await requestUnderWay(outside, unit)) !== undefined) return readInUnit(context, root, files);
    throw new Error(`systemd-run: ${started.stderr.trim()}`);
  }
  await say(`reading ${root} in ${unit}, which goes on if this connection ends; systemctl stop ends it`);
  const outcome = await follow(context, unit, `${folder}/${request}`);
  for (const part of ['request.json', 'progress', 'outcome.json']) {
    await outside.removeDurably(`${folder}/${request}.${part}`);
  }
  if (outcome !== undefined) return new Map(Object.entries(outcome));
  throw new Error(
    `${unit} was stopped or killed before its end (journalctl -u ${unit}); what it has read is remembered: ` +
      'the same command goes on from there',
  );
}

const descriptionPrefix = 'slot hashing ';

function hashingUnit(service: string, root: string): string {
  return `${service}-hashing-${rootKey(root)}.service`;
}

async function requestUnderWay(outside: Outside, unit: string): Promise<string | undefined> {
  const { ActiveState, Description } = await showUnit(outside, unit, ['ActiveState', 'Description']);
  const isOurs = isUnderWay(ActiveState) && Description.startsWith(descriptionPrefix);
  return isOurs ? Description.slice(descriptionPrefix.length) : undefined;
}

/** Passes progress on until the outcome is there; undefined: the unit ended without one. */
async function follow(
  { outside, say }: HashContext,
  unit: string,
  files: string,
): Promise<z.infer<typeof outcomeSchema> | undefined> {
  let told = 0;
  let goneSince: number | undefined;
  for (let look = 0; ; look += 1) {
    const outcome = await outside.readText(`${files}.outcome.json`);
    const lines = ((await outside.readText(`${files}.progress`)) ?? '').split('\n').slice(0, -1);
    for (const line of lines.slice(told)) await say(line);
    told = lines.length;
    if (outcome !== undefined) return outcomeSchema.parse(JSON.parse(outcome));
    const now = outside.monotonicSeconds();
    // Once a second: each question is a process.
    if (look % 10 === 0) {
      const { ActiveState } = await showUnit(outside, unit, ['ActiveState']);
      goneSince = isUnderWay(ActiveState) ? undefined : (goneSince ?? now);
    }
    if (goneSince !== undefined && now - goneSince > 2) return undefined;
    await outside.sleep(0.1);
  }
}

/** Runs inside the unit: reads what is asked for, remembers it, and leaves the outcome for whoever follows. */
export async function readRequested(outside: Outside, service: string, request: string): Promise<void> {
  const files = join(runFolder, service, basename(request));
  const path = `${files}.request.json`;
  const text = await outside.readText(path);
  if (text === undefined) throw new Error(`${path}: no such request`);
  const { root, files: wanted } = requestSchema.parse(JSON.parse(text));
  const say = async (line: string) => {
    process.stdout.write(`${line}\n`);
    // The journal has it; whoever follows still gets the outcome.
    await outside.append(`${files}.progress`, `${line}\n`).catch(() => undefined);
  };
  const outcome = await readAll(outside, await HashMemo.open(outside, service, root), wanted, say);
  await outside.writeDurably(`${files}.outcome.json`, JSON.stringify(Object.fromEntries(outcome)));
}

interface Begun extends WantedFile {
  readonly status: FileStatus;
}

async function readAll(
  outside: Outside,
  memo: HashMemo,
  wanted: readonly WantedFile[],
  say: (line: string) => Promise<void>,
): Promise<ReadonlyMap<string, HashResult>> {
  const outcome = new Map<string, HashResult>();
  const begun = new Map<string, Begun>();
  for (const file of wanted) {
    const status = await outside.statusOf(file.path).catch(() => undefined);
    if (status === undefined) outcome.set(file.name, { error: 'is gone' });
    else begun.set(file.path, { ...file, status });
  }
  const readAt = outside.now().getTime();
  let unsaved = false;
  const save = async () => {
    if (!unsaved) return;
    unsaved = false;
    await memo.save().catch((error: Error) => say(`not remembered, to be read again: ${error.message}`));
  };
  const conclude = async ({ name, path, expected, status }: Begun, result: HashResult): Promise<void> => {
    const after = await outside.statusOf(path).catch(() => undefined);
    if ('error' in result) outcome.set(name, result);
    else if (after === undefined) outcome.set(name, { error: 'was taken away while it was read' });
    else if (!isSameFile(status, after)) outcome.set(name, { error: 'was changed while it was read' });
    else {
      outcome.set(name, result);
      memo.remember(name, status, result.sha256, readAt);
      unsaved = true;
      if (expected !== undefined && !result.sha256.startsWith(expected))
        await say(`${name} is another file than expected`);
    }
  };
  // Large ones first: else the last of them would be read by one core alone.
  const ordered = [...begun.values()].sort((one, other) => other.status.size - one.status.size);
  const totalBytes = ordered.reduce((sum, { status }) => sum + status.size, 0);
  await say(`${counted(ordered.length, 'file')}, ${sizeText(totalBytes)} to read`);
  const concluding: Promise<void>[] = [];
  const hashing = outside.hashFiles(
    ordered.map(({ path }) => path),
    (path, result) => {
      const file = begun.get(path);
      if (file !== undefined) concluding.push(conclude(file, result));
    },
  );
  const isStuck = await attend(outside, hashing, totalBytes, { say, save });
  await Promise.all(concluding);
  await save();
  for (const { name } of ordered) {
    if (!outcome.has(name)) {
      outcome.set(name, { error: isStuck ? `gave no byte for ${stuckSeconds} s` : 'was not read' });
    }
  }
  return outcome;
}

/** Waits for the end of a reading; true when it was given up, because nothing came any more. */
async function attend(
  outside: Outside,
  hashing: Hashing,
  totalBytes: number,
  { say, save }: { say: (line: string) => Promise<void>; save: () => Promise<void> },
): Promise<boolean> {
  let ended = false;
  const end = hashing.ended.then(() => {
    ended = true;
  });
  const startedAt = outside.monotonicSeconds();
  let [movedAt, savedAt, toldAt] = [startedAt, startedAt, startedAt];
  let bytes = 0;
  for (;;) {
    await Promise.race([end, outside.sleep(0.5)]);
    const now = outside.monotonicSeconds();
    if (hashing.bytesRead() !== bytes) movedAt = now;
    bytes = hashing.bytesRead();
    if (ended) {
      await say(`${sizeText(bytes)} read in ${(now - startedAt).toFixed(1)} s`);
      return false;
    }
    if (now - movedAt > stuckSeconds) return true;
    if (now - savedAt >= saveSeconds) {
      savedAt = now;
      await save();
    }
    if (now - toldAt < tellSeconds) continue;
    toldAt = now;
    const rate = bytes / (now - startedAt);
    const left = rate === 0 ? 'unknown time' : `about ${Math.ceil((totalBytes - bytes) / rate)} s`;
    const quiet = now - movedAt > tellSeconds ? `, no byte for ${Math.round(now - movedAt)} s` : '';
    const names = hashing.current().map((path) => basename(path));
    const others = names.length > 1 ? ` and ${names.length - 1} more` : '';
    await say(
      `${sizeText(bytes)} of ${sizeText(totalBytes)}, ${sizeText(rate)}/s, ${left} left${quiet}; ${names[0] ?? ''}${others}`,
    );
  }
}
