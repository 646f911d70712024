import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  appendFile,
  constants,
  mkdir,
  open,
  opendir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
} from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Hashing, type HashResult, hashFiles } from './hashing/hash-files.ts';

export interface CommandResult {
  /** Exit status; 128 + n when signal n ended it, 124 on its time limit, 127 when it could not be started. */
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  /** Text for standard input; default none: a child never reads its caller's. */
  readonly input?: string;
  /** Killed after this many seconds; default 60. */
  readonly timeoutSeconds?: number;
  /** Called with each line of output as it comes. */
  readonly onLine?: (line: string) => void;
}

export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

export interface FilePart {
  readonly bytes: Uint8Array;
  /** Of the whole file. */
  readonly fileBytes: number;
}

/** A file as the kernel tells it apart from every other, and from itself before a change. */
export interface FileStatus {
  readonly kind: 'file' | 'folder' | 'other';
  /** Decimal, as the next three: more digits than a number holds. */
  readonly device: string;
  readonly inode: string;
  /** Of its content, in nanoseconds since 1970. */
  readonly modified: string;
  /** Of content, name or owner, which no program can set back. */
  readonly changed: string;
  /** In bytes. */
  readonly size: number;
}

/** The one seam through which the agent touches the world: tests stand here, faults are injected here. */
export interface Outside {
  run(command: string, args: readonly string[], options?: CommandOptions): Promise<CommandResult>;
  /** Whole answer within the limit in seconds, or an error that says what was missing; `key` is shown as a bearer. */
  request(
    method: 'GET' | 'POST',
    url: string,
    body: unknown,
    timeoutSeconds: number,
    key?: string,
  ): Promise<HttpAnswer>;
  /** `undefined` when there is no such file. */
  readText(path: string): Promise<string | undefined>;
  /**
   * At most `length` bytes from `offset` on; `undefined` when there is no such file, an error for what is no regular
   * file: the reading of a pipe would wait for its other end.
   */
  readPart(path: string, offset: number, length: number): Promise<FilePart | undefined>;
  /** Temporary name, sync, rename, directory sync: after a power cut the old or the new content is there. */
  writeDurably(path: string, content: string | Uint8Array): Promise<void>;
  removeDurably(path: string): Promise<void>;
  append(path: string, text: string): Promise<void>;
  makeFolder(path: string): Promise<void>;
  /** Names in a folder, sorted, of more than `atMost` any so many; none when there is no such folder. */
  list(path: string, atMost?: number): Promise<string[]>;
  readLink(path: string): Promise<string | undefined>;
  kindOf(path: string): Promise<'file' | 'folder' | 'other' | 'absent'>;
  /** Of what a link leads to; `undefined` when there is nothing. */
  statusOf(path: string): Promise<FileStatus | undefined>;
  /** SHA-256 of whole files, on all cores, begun in the given order. */
  hashFiles(paths: readonly string[], onEnd: (path: string, result: HashResult) => void): Hashing;
  now(): Date;
  /** Goes on at one pace whatever is done to the clock: for waiting. */
  monotonicSeconds(): number;
  sleep(seconds: number): Promise<void>;
}

export const realOutside: Outside = {
  run,
  request,
  async readText(path) {
    return absentAs(undefined, readFile(path, 'utf8'));
  },
  readPart: (path, offset, length) => absentAs(undefined, readPart(path, offset, length)),
  async writeDurably(path, content) {
    const temporary = `${path}.${randomBytes(4).toString('hex')}`;
    const file = await open(temporary, 'w', 0o644);
    try {
      await file.writeFile(content);
      await file.sync();
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    } finally {
      await file.close();
    }
    await rename(temporary, path);
    await syncFolder(dirname(path));
  },
  async removeDurably(path) {
    await rm(path, { force: true, recursive: true });
    await absentAs(undefined, syncFolder(dirname(path)));
  },
  append: (path, text) => appendFile(path, text),
  async makeFolder(path) {
    await mkdir(path, { recursive: true });
  },
  async list(path, atMost) {
    return (await absentAs([], atMost === undefined ? readdir(path) : firstNames(path, atMost))).sort();
  },
  async readLink(path) {
    return readlink(path).catch(() => undefined);
  },
  async kindOf(path) {
    const found = await absentAs(undefined, stat(path));
    if (found === undefined) return 'absent';
    if (found.isFile()) return 'file';
    return found.isDirectory() ? 'folder' : 'other';
  },
  async statusOf(path) {
    const found = await absentAs(undefined, stat(path, { bigint: true }));
    return (
      found && {
        kind: found.isFile() ? 'file' : found.isDirectory() ? 'folder' : 'other',
        device: String(found.dev),
        inode: String(found.ino),
        modified: String(found.mtimeNs),
        changed: String(found.ctimeNs),
        size: Number(found.size),
      }
    );
  },
  hashFiles,
  now: () => new Date(),
  monotonicSeconds: () => performance.now() / 1000,
  sleep: (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000)),
};

async function readPart(path: string, offset: number, length: number): Promise<FilePart> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const status = await file.stat();
    if (!status.isFile()) throw new Error(`${path} is no regular file`);
    const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(length, status.size - offset)));
    let filled = 0;
    while (filled < bytes.length) {
      const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, offset + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return { bytes: bytes.subarray(0, filled), fileBytes: status.size };
  } finally {
    await file.close();
  }
}

async function firstNames(path: string, atMost: number): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of await opendir(path, { bufferSize: 1024 })) {
    if (names.length === atMost) break;
    names.push(name);
  }
  return names;
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function absentAs<T>(instead: T, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    // The last two: a process or a cgroup that ended between opening and reading.
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ESRCH' || code === 'ENODEV') return instead;
    throw error;
  }
}

const signalNumbers: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 };

function run(command: string, args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return new Promise((resolve) => {
    const timeout = options.timeoutSeconds ?? 60;
    const child = spawn(command, args, {
      stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      env: { ...process.env, LC_ALL: 'C.UTF-8', SYSTEMD_PAGER: '', SYSTEMD_COLORS: '0' },
    });
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill('SIGKILL');
    }, timeout * 1000);
    const output = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'] as const) {
      let partial = '';
      child[stream]?.setEncoding('utf8').on('data', (text: string) => {
        output[stream] += text;
        if (options.onLine === undefined) return;
        const lines = (partial + text).split(/[\r\n]+/);
        partial = lines.pop() ?? '';
        for (const line of lines) options.onLine(line);
      });
    }
    child.on('error', (error) => {
      clearTimeout(timer);
      resolve({ exitCode: 127, stdout: '', stderr: `${command}: ${error.message}` });
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (timedOut) {
        resolve({
          exitCode: 124,
          stdout: output.stdout,
          stderr: `${output.stderr}\n${command}: no end within ${timeout} s`,
        });
      } else {
        resolve({ exitCode: code ?? 128 + (signalNumbers[signal ?? ''] ?? 0), ...output });
      }
    });
    if (options.input !== undefined) child.stdin?.on('error', () => undefined).end(options.input);
  });
}

/**
 * Each on a connection of its own. Not `fetch`, nor an import of `node:http`, which reads all names there and
 * with them loads it: that takes 40 ms, in every status and preview.
 */
function request(
  method: 'GET' | 'POST',
  url: string,
  body: unknown,
  timeoutSeconds: number,
  key?: string,
): Promise<HttpAnswer> {
  const { request: httpRequest } = process.getBuiltinModule('node:http');
  const content = body === undefined ? undefined : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    let received = 'no answer';
    const fail = (error: Error) => {
      const reason = error.cause instanceof Error ? error.cause.message : error.message;
      reject(new Error(`${method} ${url}: ${received} within ${timeoutSeconds} s (${reason})`));
    };
    const options = {
      method,
      agent: false,
      signal: AbortSignal.timeout(timeoutSeconds * 1000),
      headers: {
        ...(content !== undefined && { 'content-type': 'application/json' }),
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
      },
    };
    const asked = httpRequest(url, options, (response) => {
      const status = response.statusCode ?? 0;
      received = `headers with status ${status}, but not the whole body`;
      let text = '';
      response
        .setEncoding('utf8')
        .on('data', (part: string) => {
          text += part;
        })
        .on('error', fail)
        .on('end', () => resolve({ status, body: text }));
    });
    asked.on('error', fail).end(content);
  });
}
