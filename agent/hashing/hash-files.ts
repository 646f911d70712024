/** How the reading of a file ended: with its SHA-256, or with what the system said. */
export type HashResult = { readonly sha256: string } | { readonly error: string };

/** Files that are being read. */
export interface Hashing {
  /** Resolves when every file has ended, well or not. */
  readonly ended: Promise<void>;
  /** Bytes read so far, of all files together. */
  bytesRead(): number;
  /** Files that are being read at this moment. */
  current(): readonly string[];
}

interface WorkerData {
  /** One cell, to which the worker adds what it reads. */
  readonly bytesRead: BigInt64Array;
}

/**
 * Reads whole files, as many at once as there are cores, begun in the given order; `onEnd` gets each when it ends. What
 * is no regular file ends with an error and is not waited for.
 *
 * Threads, and node:crypto in each: as fast as `openssl dgst`, without a process for each file; `sha256sum` of
 * coreutils 9.1 took three times as long (`npm run bench -- hashing`).
 */
export function hashFiles(
  paths: readonly string[],
  onEnd: (path: string, result: HashResult) => void,
): Hashing {
  // Loaded here: a status must not pay for it.
  const { Worker } = process.getBuiltinModule('node:worker_threads');
  const { availableParallelism } = process.getBuiltinModule('node:os');
  const waiting = [...paths];
  const counters: BigInt64Array[] = [];
  const current = new Set<string>();
  const work = (): Promise<void> =>
    new Promise((resolve) => {
      const bytesRead = new BigInt64Array(new SharedArrayBuffer(8));
      counters.push(bytesRead);
      const workerData: WorkerData = { bytesRead };
      // By its text: so it runs alike from the sources, in a test and from the one file of the host program.
      const worker = new Worker(`(${hashesAsked})()`, { eval: true, workerData });
      let path: string | undefined;
      const end = (result: HashResult) => {
        if (path === undefined) return;
        current.delete(path);
        onEnd(path, result);
        path = undefined;
      };
      const next = () => {
        path = waiting.shift();
        if (path === undefined) return resolve(worker.terminate().then(() => undefined));
        current.add(path);
        worker.postMessage(path);
      };
      worker.on('message', (result: HashResult) => {
        end(result);
        next();
      });
      // The other threads take what is left.
      worker.on('error', (error) => {
        end({ error: `the thread that read it ended: ${error.message}` });
        resolve();
      });
      next();
    });
  const threads = Math.min(availableParallelism(), paths.length);
  return {
    ended: Promise.all(Array.from({ length: threads }, work)).then(() => undefined),
    bytesRead: () => counters.reduce((sum, counter) => sum + Number(Atomics.load(counter, 0)), 0),
    current: () => [...current],
  };
}

/** What a worker does. Its text is all that the worker gets: nothing from outside of it can be used. */
function hashesAsked(): void {
  const { parentPort, workerData } = process.getBuiltinModule('node:worker_threads');
  const { closeSync, constants, fstatSync, openSync, readSync } = process.getBuiltinModule('node:fs');
  const { createHash } = process.getBuiltinModule('node:crypto');
  const { bytesRead } = workerData as WorkerData;
  const buffer = new Uint8Array(512 * 1024);
  parentPort?.on('message', (path: string) => {
    let file: number | undefined;
    let result: HashResult;
    try {
      // Not waiting for the other end of a pipe that has taken the file's place.
      file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
      if (!fstatSync(file).isFile()) throw new Error('is no regular file');
      const hash = createHash('sha256');
      for (;;) {
        const length = readSync(file, buffer, 0, buffer.length, null);
        if (length === 0) break;
        hash.update(length === buffer.length ? buffer : buffer.subarray(0, length));
        Atomics.add(bytesRead, 0, BigInt(length));
      }
      result = { sha256: hash.digest('hex') };
    } catch (error) {
      result = { error: (error as Error).message };
    } finally {
      if (file !== undefined) closeSync(file);
    }
    parentPort?.postMessage(result);
  });
}
