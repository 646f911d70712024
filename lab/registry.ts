import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { execa } from 'execa';
import { stringify } from 'yaml';
import { labCache } from './cache.ts';
import { REGISTRY_NAME, REGISTRY_PORT } from './guest-tree.ts';
import { identifyProcess, isAlive, type ProcessIdentity, processIdentity } from './process.ts';

const START_LIMIT_MS = 10_000;
const STOP_LIMIT_MS = 5_000;
const POLL_MS = 20;

/** Prefix of the images that labs pull: `registry.lab:5000/tcclaviger/vllm@sha256:…`. */
export const REGISTRY = `${REGISTRY_NAME}:${REGISTRY_PORT}`;

/** The registry of one lab. All of them serve the same images, which outlive them in the cache. */
export interface LabRegistry {
  /** Resolves when it answers; nothing to do when it runs already, whoever started it. */
  start(): Promise<void>;
  /** Resolves when its port is free. */
  stop(): Promise<void>;
  running(): Promise<boolean>;
}

/** The registry on port 5000 of one of this machine's addresses. It goes on without the process that started it. */
export function registryAt(address: string): LabRegistry {
  const folder = join(labCache(), 'registry', address);
  const processFile = join(folder, 'process.json');

  async function runningProcess(): Promise<ProcessIdentity | undefined> {
    const text = await readFile(processFile, 'utf8').catch(() => undefined);
    const found = text === undefined ? undefined : processIdentity.parse(JSON.parse(text));
    return found && isAlive(found) ? found : undefined;
  }

  return {
    async start() {
      if (await runningProcess()) return;
      await mkdir(folder, { recursive: true });
      const { identity } = await serve(folder, `${address}:${REGISTRY_PORT}`);
      await writeFile(processFile, JSON.stringify(identity));
    },
    async stop() {
      const found = await runningProcess();
      if (found) await end(found);
      await rm(folder, { recursive: true, force: true });
    },
    async running() {
      return (await runningProcess()) !== undefined;
    },
  };
}

/**
 * Puts an image into the labs' registry, where it stays; no lab needs to run.
 * @param source the image as skopeo names it: `oci:<folder>:<tag>`, `docker-archive:<file>`, `containers-storage:…`
 * @param name repository and tag, e.g. `tcclaviger/vllm:tag`
 * @returns the digest `sha256:…` under which labs pull it
 */
export async function pushImage(source: string, name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'slot-push-'));
  try {
    const { identity, address } = await serve(folder, '127.0.0.1:0');
    try {
      const digestFile = join(folder, 'digest');
      const copied = await execa(
        'skopeo',
        [
          ...['--insecure-policy', 'copy', '--quiet', '--dest-tls-verify=false', '--digestfile', digestFile],
          ...[source, `docker://${address}/${name}`],
        ],
        { stdin: 'ignore', reject: false },
      );
      if (copied.exitCode !== 0)
        throw new Error(`skopeo could not copy ${source} to the lab's registry as ${name}: ${copied.stderr}`);
      return (await readFile(digestFile, 'utf8')).trim();
    } finally {
      await end(identity);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Starts a registry that listens on `address` (port 0: any free one) and resolves when it does. */
async function serve(
  folder: string,
  address: string,
): Promise<{ identity: ProcessIdentity; address: string }> {
  const configuration = join(folder, 'config.yml');
  await writeFile(
    configuration,
    stringify({
      version: 0.1,
      log: { accesslog: { disabled: true } },
      storage: {
        filesystem: { rootdirectory: join(labCache(), 'registry', 'images') },
        delete: { enabled: true },
      },
      http: { addr: address },
    }),
  );
  const logFile = join(folder, 'log');
  const log = await open(logFile, 'w');
  const child = spawn('docker-registry', ['serve', configuration], {
    // An exporter of traces that a user's environment configures is none of the lab's business.
    env: { PATH: process.env.PATH, OTEL_TRACES_EXPORTER: 'none' },
    stdio: ['ignore', log.fd, log.fd],
    detached: true,
  });
  const failure = new Promise<never>((_, reject) => {
    child.once('error', reject);
    child.once('exit', async () =>
      reject(new Error(`docker-registry on ${address} ended: ${await readFile(logFile, 'utf8')}`)),
    );
  });
  failure.catch(() => {});
  child.unref();
  await log.close();
  if (child.pid === undefined) return failure;
  const identity = identifyProcess(child.pid);
  const listening = await Promise.race([failure, listeningAddress(logFile)]);
  child.removeAllListeners('exit');
  if (listening) return { identity, address: listening };
  await end(identity);
  throw new Error(`docker-registry on ${address} does not listen after ${START_LIMIT_MS / 1000} s`);
}

async function listeningAddress(logFile: string): Promise<string | undefined> {
  for (const deadline = Date.now() + START_LIMIT_MS; Date.now() < deadline; await setTimeout(POLL_MS)) {
    const found = /listening on ([\d.]+:\d+)/.exec(await readFile(logFile, 'utf8'))?.[1];
    if (found) return found;
  }
  return undefined;
}

async function end(identity: ProcessIdentity): Promise<void> {
  process.kill(identity.pid, 'SIGTERM');
  const deadline = Date.now() + STOP_LIMIT_MS;
  while (isAlive(identity)) {
    if (Date.now() > deadline) process.kill(identity.pid, 'SIGKILL');
    await setTimeout(POLL_MS);
  }
}
