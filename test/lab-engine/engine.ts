import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, afterEach } from 'vitest';

export const SERVER = join(import.meta.dirname, '../../lab/engine/server');

// Once, because `python3` may be a wrapper that takes longer than the engine.
const PYTHON = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], {
  encoding: 'utf8',
}).trim();

const MODULES = { vllm: ['vllm.entrypoints.cli.main', 'serve'], r9v: ['r9v.server'] } as const;

const temporary = mkdtempSync(join(tmpdir(), 'lab-engine-'));
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

// Compiled once for all engines of a test file, outside the repository.
const PYTHON_ENVIRONMENT = { PYTHONPYCACHEPREFIX: temporaryFolder() };

const started: ChildProcess[] = [];

export function endEngines(): void {
  for (const process of started.splice(0)) process.kill('SIGKILL');
}

/** Ends after each test what the test started. */
export function endEnginesAfterEach(): void {
  afterEach(endEngines);
}

/** Removed when the tests of the file are done. */
export function temporaryFolder(): string {
  return mkdtempSync(join(temporary, 'folder-'));
}

/** A payload folder as the vllm personality wants it. */
export function payload(config: object = { model_type: 'glm5_next' }): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  return folder;
}

/** A split GGUF payload; returns the path of its first part. */
export function ggufPayload(parts: readonly number[] = [1, 2]): string {
  const folder = temporaryFolder();
  const part = (number: number): string => join(folder, `x-0000${number}-of-00002.gguf`);
  for (const number of parts) writeFileSync(part(number), 'GGUF');
  return part(1);
}

export interface EngineOptions {
  readonly engine?: keyof typeof MODULES;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A copy of the Python packages to run instead of the repository's. */
  readonly packages?: string;
  /** A command that runs the engine, e.g. one that takes a capability away. */
  readonly wrapper?: readonly string[];
}

export class RunningEngine {
  readonly url: string;
  readonly process: ChildProcess;
  readonly exitCode: Promise<number | null>;
  log = '';

  constructor(url: string, process: ChildProcess) {
    this.url = url;
    this.process = process;
    const collect = (data: Buffer): void => {
      this.log += data;
    };
    process.stdout?.on('data', collect);
    process.stderr?.on('data', collect);
    this.exitCode = new Promise((resolve) => process.once('close', resolve));
  }

  async untilReady(): Promise<this> {
    for (;;) {
      if ((await this.status('/health')) === 200) return this;
      if (this.process.exitCode !== null) throw new Error(`the engine ended:\n${this.log}`);
      await setTimeout(10);
    }
  }

  async untilLog(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.log)) {
      if (this.process.exitCode !== null)
        throw new Error(`the engine ended without ${pattern}:\n${this.log}`);
      await setTimeout(10);
    }
  }

  /** The status of an answer, or `refused` when nothing listens. */
  async status(path: string): Promise<number | 'refused'> {
    try {
      return (await fetch(this.url + path)).status;
    } catch {
      return 'refused';
    }
  }

  async get(path: string): Promise<Answer> {
    return answer(await fetch(this.url + path));
  }

  async post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return answer(await fetch(this.url + path, { method: 'POST', body: JSON.stringify(body), headers }));
  }

  /** Asks one question; the answer's first choice. */
  async ask(content: unknown, extra: object = {}): Promise<Choice> {
    const { status, json } = await this.post('/v1/chat/completions', {
      messages: [{ role: 'user', content }],
      ...extra,
    });
    if (status !== 200) throw new Error(`status ${status}: ${JSON.stringify(json)}`);
    return (json as { choices: [Choice] }).choices[0];
  }
}

export interface Choice {
  readonly finish_reason: string;
  readonly message: {
    readonly content: string | null;
    readonly reasoning?: string | null;
    readonly reasoning_content?: string | null;
    readonly tool_calls: readonly {
      readonly function: { readonly name: string; readonly arguments: string };
    }[];
  };
}

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly json: unknown;
}

async function answer(response: Response): Promise<Answer> {
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json');
  return { status: response.status, text, json: isJson ? JSON.parse(text) : undefined };
}

/** Starts an engine that loads in no time unless told otherwise. */
export async function startEngine(options: EngineOptions = {}): Promise<RunningEngine> {
  const { engine = 'vllm', args = [], env = {}, packages = SERVER, wrapper = [] } = options;
  const port = await freePort();
  const [command = PYTHON, ...rest] = [...wrapper, PYTHON, '-m', ...MODULES[engine], ...args];
  const child = spawn(command, [...rest, '--host', '127.0.0.1', '--port', String(port)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      PYTHONPATH: packages,
      ...PYTHON_ENVIRONMENT,
      LAB_ENGINE_LOAD_SECONDS: '0',
      ...env,
    },
  });
  started.push(child);
  return new RunningEngine(`http://127.0.0.1:${port}`, child);
}

/** Starts an engine that is expected to end by itself; its exit code and all that it printed. */
export async function runEngine(options: EngineOptions): Promise<{ code: number | null; log: string }> {
  const engine = await startEngine(options);
  return { code: await engine.exitCode, log: engine.log };
}

/** Runs a Python program with arguments to its end, whatever that is. */
export function runPython(
  program: string,
  args: readonly string[] = [],
  packages = SERVER,
): { exitCode: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(PYTHON, ['-c', program, ...args], {
    encoding: 'utf8',
    env: { PYTHONPATH: packages, ...PYTHON_ENVIRONMENT },
  });
  return { exitCode: status, stdout, stderr };
}

/** Runs Python code with the engine's packages, as a preflight would in a throw-away container. */
export function python(code: string, packages = SERVER): string {
  return execFileSync(PYTHON, ['-c', code], {
    encoding: 'utf8',
    env: { PYTHONPATH: packages, ...PYTHON_ENVIRONMENT },
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
