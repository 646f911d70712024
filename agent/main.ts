import { parseArgs } from 'node:util';
import * as z from 'zod';
import { compileRequestSchema, imageFilesRequestSchema } from '../shape/image-files.ts';
import { exitCodes, isBeforeTheStop, type Outcome, type Transaction } from '../shape/inspection.ts';
import { stateRoot } from '../shape/names.ts';
import { payloadRequestSchema } from '../shape/payload-request.ts';
import {
  type Claim,
  manifestSchema,
  releaseIdOf,
  releaseSchema,
  secretNameSchema,
  sha256,
  shortId,
} from '../shape/release.ts';
import { nameSchema } from '../shape/text.ts';
import { readRequested } from './hashing/hash-job.ts';
import { payloadCommand } from './hashing/payload-command.ts';
import { hostSetup, hostSetupSchema } from './host-setup.ts';
import { hostTeardown } from './host-teardown.ts';
import { describeImage } from './image-description.ts';
import { imageFiles } from './image-file.ts';
import { inspect } from './inspect.ts';
import { realOutside } from './outside.ts';
import { putSecret } from './podman.ts';
import { preflight } from './preflight.ts';
import { Progress } from './progress.ts';
import { compileInImage } from './python-compile.ts';
import {
  nothingTouchedExitCode,
  type Request,
  Requests,
  SlotBusy,
  startedAgainExitCode,
} from './requests.ts';
import { retainedReleases } from './retention.ts';
import { StageFailure } from './stages.ts';
import { statusText } from './status.ts';
import { Store } from './store.ts';
import { removeStaleThrowAways } from './throw-away.ts';
import { cutover, recover, type TransactionContext, vacate } from './transaction.ts';

/** Put in by the bundler: content hash of the agent's sources. */
declare const AGENT_VERSION: string | undefined;
const version = typeof AGENT_VERSION === 'string' ? AGENT_VERSION : 'unbundled';

// Each run parses a few small documents: compiling code for that takes 50 ms of a status and saves nothing.
z.config({ jitless: true });

/** Of a release's id, to name one: fewer could name several. */
const leastIdDigits = 8;

const outside = realOutside;
const by = process.env.SUDO_USER ?? process.env.USER ?? 'root';

/** A request that cannot be carried out as written; nothing was touched. */
class UsageError extends Error {}

interface Call {
  readonly words: readonly string[];
  readonly service: string | undefined;
  readonly request: string | undefined;
  readonly claim: string | undefined;
  readonly shape: string | undefined;
  readonly name: string | undefined;
  readonly json: boolean;
}

const commands: Readonly<Record<string, (call: Call) => Promise<number>>> = {
  status: async (call) => {
    const service = await serviceOf(call);
    const found = await inspect(outside, new Store(outside, service), service, version, undefined);
    process.stdout.write(call.json ? `${JSON.stringify(found, null, 2)}\n` : statusText(found));
    return 0;
  },

  inspect: async () => {
    const schema = z.strictObject({ service: nameSchema, release: releaseSchema.optional() });
    const { service, release } = await documentFromStandardInput(schema);
    const store = new Store(outside, service);
    process.stdout.write(`${JSON.stringify(await inspect(outside, store, service, version, release))}\n`);
    return 0;
  },

  preflight: async () => {
    const release = await documentFromStandardInput(releaseSchema);
    const { service } = release;
    const progress = new Progress(outside, async (line) => void process.stderr.write(`${line}\n`));
    try {
      await preflight({ outside, service, progress, store: new Store(outside, service), release });
      return exitCodes.serving;
    } catch (error) {
      if (!(error instanceof StageFailure)) throw error;
      process.stderr.write(`${error.stage}: ${error.message}\n`);
      return exitCodes.refused;
    }
  },

  payload: async (call) => {
    const [verb] = call.words;
    if (verb !== 'seal' && verb !== 'verify') throw new UsageError('usage: slot payload seal|verify');
    const { service, trees } = await documentFromStandardInput(payloadRequestSchema);
    const say = async (line: string) => void process.stderr.write(`${line}\n`);
    const answer = await payloadCommand(verb, { outside, service, say }, trees);
    process.stdout.write(answer ?? '');
    return answer === undefined ? exitCodes.refused : 0;
  },

  hash: async (call) => {
    if (call.service === undefined || call.request === undefined)
      throw new UsageError('hash is not for people');
    await readRequested(outside, call.service, call.request);
    // A thread that waits for a dead disk is not waited for.
    process.exit(0);
  },

  'describe-image': async () => {
    const asked = await documentFromStandardInput(releaseSchema.pick({ image: true, engineKind: true }));
    process.stdout.write(`${JSON.stringify(await describeImage(outside, asked))}\n`);
    return 0;
  },

  'image-files': async () => {
    const asked = await documentFromStandardInput(imageFilesRequestSchema);
    const images = await imageFiles(outside, asked, (line) => process.stderr.write(`${line}\n`));
    process.stdout.write(`${JSON.stringify({ images })}\n`);
    return 0;
  },

  'compile-python': async () => {
    const asked = await documentFromStandardInput(compileRequestSchema);
    process.stdout.write(`${JSON.stringify(await compileInImage(outside, asked))}\n`);
    return 0;
  },

  cutover: async () => {
    const { release, claim } = await documentFromStandardInput(manifestSchema);
    const request: Request = { kind: 'cutover', by, release, claim, expectedEpoch: claim.epoch };
    return carryOut(release.service, request);
  },

  rollback: async (call) => {
    const service = await serviceOf(call);
    const store = new Store(outside, service);
    const slot = await store.slot();
    if (slot.previousReleaseId === null) throw new UsageError('there is no previous release to go back to');
    const release = await store.release(slot.previousReleaseId);
    const claim = await store.claim(slot.previousReleaseId);
    if (claim === undefined) throw new UsageError(`the claim of ${release.shape} is gone; use its stack`);
    return carryOut(service, { kind: 'cutover', by, release, claim, expectedEpoch: slot.epoch });
  },

  vacate: async (call) => {
    const service = await serviceOf(call);
    const { shape } = call;
    if (call.claim === undefined || shape === undefined)
      throw new UsageError('--claim and --shape are needed');
    const store = new Store(outside, service);
    const { occupant } = await store.slot();
    const own: Claim | undefined =
      occupant !== null && shortId(sha256(occupant.claim.token)) === call.claim ? occupant.claim : undefined;
    const exitCode = own === undefined ? 0 : await carryOut(service, { kind: 'vacate', by, claim: own });
    if (exitCode !== 0) return exitCode;
    if (own === undefined) process.stderr.write(`${shape} does not hold the slot: what serves goes on\n`);
    const retained = await retainedReleases(store);
    for (const id of await store.releaseIds()) {
      const release = await store.release(id).catch(() => undefined);
      if (release?.shape !== shape) continue;
      const reason = retained.get(id);
      if (reason === undefined) await store.removeRelease(id);
      else process.stderr.write(`release ${shortId(id)} of ${shape} stays: ${reason}\n`);
    }
    return exitCode;
  },

  release: async (call) => {
    const [verb, wanted] = call.words;
    if (verb !== 'forgive' || wanted === undefined)
      throw new UsageError('usage: slot release forgive RELEASE|SHAPE');
    const service = await serviceOf(call);
    const store = new Store(outside, service);
    let lifted = 0;
    for (const id of await store.quarantined()) {
      const release = await store.release(id).catch(() => undefined);
      const isNamed = wanted.length >= leastIdDigits && id.startsWith(wanted);
      if (!isNamed && release?.shape !== wanted) continue;
      await store.liftQuarantine(id);
      process.stdout.write(`release ${shortId(id)} may be tried again\n`);
      lifted += 1;
    }
    if (lifted === 0) throw new UsageError(`no quarantined release is called ${wanted}`);
    return 0;
  },

  recover: async (call) => {
    const service = await serviceOf(call);
    const record = await new Store(outside, service).transaction();
    if (record === undefined || record.outcome !== undefined) return 0;
    const requests = new Requests(outside, new Store(outside, service), service);
    await requests.submit({ kind: 'recover', by: 'recovery' }, [process.execPath, thisProgram()]);
    return 0;
  },

  transact: async (call) => {
    if (call.service === undefined || call.request === undefined)
      throw new UsageError('transact is not for people');
    return transact(call.service, call.request);
  },

  secret: async (call) => {
    const name = secretNameSchema.safeParse(call.name);
    if (!name.success) throw new UsageError('--name is needed: letters, digits, _ . -');
    await putSecret(outside, name.data, await standardInput());
    return 0;
  },

  'host-setup': async () => {
    const lines = await hostSetup(outside, await documentFromStandardInput(hostSetupSchema));
    process.stdout.write(`${lines.join('\n')}\n`);
    return 0;
  },

  'host-teardown': async (call) => {
    const lines = await hostTeardown(outside, await serviceOf(call));
    process.stdout.write(`${lines.join('\n')}\n`);
    return 0;
  },
};

/** Submits a request, follows it and prints its outcome: progress on standard error, JSON on standard output. */
async function carryOut(service: string, request: Request): Promise<number> {
  const requests = new Requests(outside, new Store(outside, service), service);
  try {
    const id = await requests.submit(request, [process.execPath, thisProgram()]);
    const outcome = await requests.follow(id, (text) => process.stderr.write(text));
    process.stdout.write(`${JSON.stringify(outcome, null, 2)}\n`);
    return exitCodes[outcome.kind];
  } catch (error) {
    if (!(error instanceof SlotBusy)) throw error;
    process.stderr.write(`refused: ${error.message}\n`);
    return exitCodes.refused;
  }
}

/** Runs inside the transient unit. Started again after it was killed, it ends what it finds open. */
async function transact(service: string, id: string): Promise<number> {
  const store = new Store(outside, service);
  const requests = new Requests(outside, store, service);
  const request = await requests.read(id);
  const progress = new Progress(outside, async (line) => {
    process.stdout.write(`${line}\n`);
    // The journal has it; a full disk must not end the transaction that tells of it.
    await requests.report(id, line).catch(() => undefined);
  });
  const context: TransactionContext = { outside, service, progress, store, by: request.by };
  try {
    const open = await store.transaction();
    await removeStaleThrowAways(outside);
    const recovered = await recover(context);
    const isOwn = open !== undefined && (request.kind === 'recover' || isRecordOf(request, open));
    const outcome = recovered !== undefined && isOwn ? recovered : await carryOutHere(context, request);
    if (outcome === undefined) return 0;
    await requests.finish(id, outcome);
    return exitCodes[outcome.kind];
  } catch (error) {
    await progress.say((error as Error).message);
    const record = await store.transaction().catch(() => undefined);
    const isTouched = record !== undefined && record.outcome === undefined && !isBeforeTheStop(record.phase);
    return isTouched ? startedAgainExitCode : nothingTouchedExitCode;
  }
}

/** Whether the record on disk was left by this very request, started before and killed. */
function isRecordOf(request: Request, record: Transaction): boolean {
  return request.kind === 'cutover'
    ? request.claim.token === record.claim.token && releaseIdOf(request.release) === record.releaseId
    : request.kind === record.kind;
}

async function carryOutHere(context: TransactionContext, request: Request): Promise<Outcome | undefined> {
  switch (request.kind) {
    case 'cutover':
      return cutover(context, request);
    case 'vacate':
      return vacate(context, request.claim);
    case 'recover':
      return undefined;
  }
}

async function serviceOf({ service }: Call): Promise<string> {
  if (service !== undefined) {
    if (nameSchema.safeParse(service).success) return service;
    throw new UsageError(`--service ${JSON.stringify(service)} cannot be the name of a service`);
  }
  const services: string[] = [];
  for (const name of await outside.list(stateRoot)) {
    if ((await outside.kindOf(`${stateRoot}/${name}`)) === 'folder') services.push(name);
  }
  const [only] = services;
  if (services.length === 1 && only !== undefined) return only;
  if (only === undefined)
    throw new UsageError(`${stateRoot} holds no service; run pulumi up on the host's stack`);
  throw new UsageError(`say which service with --service: ${services.join(', ')}`);
}

async function documentFromStandardInput<T>(schema: z.ZodType<T>): Promise<T> {
  const text = await standardInput();
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    const what = text === '' ? 'is empty' : `is no JSON document (${(error as Error).message})`;
    throw new UsageError(`standard input ${what}; Pulumi writes it`);
  }
  const parsed = schema.safeParse(document);
  if (parsed.success) return parsed.data;
  const reasons = z.prettifyError(parsed.error).split('\n').slice(0, 10).join('\n');
  throw new UsageError(`standard input is not what this agent (${version}) takes:\n${reasons}`);
}

async function standardInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function thisProgram(): string {
  const [, program] = process.argv;
  if (program === undefined) throw new Error('node did not say which program it runs');
  return program;
}

async function main(): Promise<number> {
  const [command = 'help', ...rest] = process.argv.slice(2);
  if (command === '--version') {
    process.stdout.write(`${version}\n`);
    return 0;
  }
  const run = commands[command];
  if (run === undefined) {
    process.stderr.write(`usage: slot ${Object.keys(commands).join(' | ')} [--service NAME] [--json]\n`);
    return 64;
  }
  const { values, positionals } = parseArgs({
    args: rest,
    allowPositionals: true,
    options: {
      service: { type: 'string' },
      request: { type: 'string' },
      claim: { type: 'string' },
      shape: { type: 'string' },
      name: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  return run({
    words: positionals,
    service: values.service,
    request: values.request,
    claim: values.claim,
    shape: values.shape,
    name: values.name,
    json: values.json,
  });
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`slot: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = error instanceof UsageError ? 64 : 70;
}
