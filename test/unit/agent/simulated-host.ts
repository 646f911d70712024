import type { Hashing, HashResult } from '../../../agent/hashing/hash-files.ts';
import { readRequested } from '../../../agent/hashing/hash-job.ts';
import type { CommandResult, FilePart, FileStatus, HttpAnswer, Outside } from '../../../agent/outside.ts';
import { ggufFile } from '../../../lab/payload/gguf.ts';
import { safetensorsFile } from '../../../lab/payload/safetensors.ts';
import { namesOf } from '../../../shape/names.ts';
import { type Release, sha256 } from '../../../shape/release.ts';

/** Stands for the death of the process that runs the transaction. */
export class Killed extends Error {}

/** How the engine of a shape behaves once its unit is started. */
export interface EngineBehaviour {
  readonly dies?: 'at load' | 'at first request';
  readonly neverReady?: boolean;
  readonly servedNames?: readonly string[];
  readonly maxModelLength?: number;
  readonly emptyCompletions?: boolean;
  readonly memlock?: string;
}

interface RunningEngine {
  readonly release: Release;
  readonly startedAt: number;
  readonly invocation: string;
  dead: boolean;
}

/** Files of a payload with one tensor of no bytes, by their names. */
const smallPayload: Readonly<Record<string, string>> = {
  'config.json': '{"quantization_config":{"quant_method":"auto-round"}}',
  'tokenizer.json': '{"model":{}}',
  'chat_template.jinja': '{{ messages }}',
  'model.safetensors': safetensorsFile({ weight: ['U8', 0] }).beginning.toString('latin1'),
};
const smallGguf = ggufFile({ tensors: {} }).beginning.toString('latin1');

/**
 * A test double of a host: files, one service unit of systemd, podman's containers and an engine, with a clock
 * of its own. It knows what the agent asks for and refuses everything else.
 */
export class SimulatedHost implements Outside {
  readonly files = new Map<string, string>();
  readonly folders = new Set<string>();
  readonly links = new Map<string, string>();
  readonly images = new Set<string>();
  readonly enabled = new Set<string>();
  /** Of every image. */
  entrypoint: readonly string[] | null = ['vllm', 'serve'];
  readonly behaviours = new Map<string, EngineBehaviour>();
  readonly calls: string[] = [];
  dropIns = '';
  strayOnPort: { pid: number; program: string } | undefined;
  stopHangs = false;
  /** Starts that fail before one succeeds, as with what a power cut leaves behind; systemd tries again after 10 s. */
  failingStarts = 0;
  memAvailableKib = 300 * 1024 * 1024;
  engine: RunningEngine | undefined;
  starts = 0;
  /** Writes after which each one fails, but for those to /run; undefined: there is room. */
  writesUntilDiskFull: number | undefined;
  /** Outside calls after which the transaction's process dies; undefined: it lives. */
  callsToLive: number | undefined;

  /** Told of each outside call before it is carried out. */
  whenCalled: ((call: string) => void) | undefined;

  readonly #service: string;
  readonly #releases: readonly Release[];
  #loaded: { path: string; text: string } | undefined;
  #clock = Date.parse('2026-10-01T00:00:00Z');
  #invocations = 0;
  #restarts = 0;

  constructor(service: string, releases: readonly Release[]) {
    this.#service = service;
    this.#releases = releases;
    for (const release of releases) {
      this.images.add(release.image);
      this.#addPayload(release.payload);
    }
    this.folders.add(namesOf(service).stateFolder);
  }

  #addPayload({ folder, entry }: Release['payload']): void {
    this.folders.add(folder);
    const files = entry === undefined ? smallPayload : { [entry]: smallGguf };
    for (const [name, content] of Object.entries(files)) this.files.set(`${folder}/${name}`, content);
  }

  /** Power cut: /run is empty afterwards and systemd starts the committed unit if it is enabled. */
  reboot(): void {
    for (const path of [...this.files.keys()]) if (path.startsWith('/run/')) this.files.delete(path);
    this.engine = undefined;
    this.callsToLive = undefined;
    this.#load();
    if (this.#loaded !== undefined && this.enabled.has(namesOf(this.#service).unit)) this.#start();
  }

  revive(): void {
    this.callsToLive = undefined;
  }

  monotonicSeconds(): number {
    return this.#clock / 1000;
  }

  now(): Date {
    return new Date(this.#clock);
  }

  async sleep(seconds: number): Promise<void> {
    this.#clock += seconds * 1000;
  }

  async run(command: string, args: readonly string[]): Promise<CommandResult> {
    this.#live(`${command} ${args.join(' ')}`);
    const ok = (stdout = ''): CommandResult => ({ exitCode: 0, stdout, stderr: '' });
    const no = (exitCode: number, stderr: string): CommandResult => ({ exitCode, stdout: '', stderr });
    if (command === 'systemd-run' && args.includes('hash')) {
      const request = args.find((word) => word.startsWith('--request='))?.slice('--request='.length);
      await readRequested(this, this.#service, request ?? '');
      return ok();
    }
    switch (`${command} ${args[0]}`) {
      case 'systemctl show':
        return ok(this.#show());
      case 'systemctl is-enabled':
        return ok(this.enabled.has(args[1] ?? '') ? 'enabled' : 'disabled');
      case 'systemctl enable':
        this.enabled.add(args[1] ?? '');
        return ok();
      case 'systemctl disable':
        this.enabled.delete(args[1] ?? '');
        return ok();
      case 'systemctl daemon-reload':
        this.#load();
        return ok();
      case 'systemctl reset-failed':
        if (this.engine?.dead) this.engine = undefined;
        return ok();
      case 'systemctl stop':
        if (this.stopHangs) return no(1, 'Job timed out');
        this.engine = undefined;
        return ok();
      case 'systemctl start':
        if (this.#loaded === undefined) return no(5, 'Unit not found');
        if (this.engine === undefined || this.engine.dead) {
          this.#restarts = 0;
          this.#start();
        }
        return ok();
      case 'podman container': {
        const engine = this.#alive();
        if (engine === undefined || engine.release.container !== args[2]) return no(1, 'no such container');
        return ok(this.#container(engine));
      }
      case 'podman ps': {
        const listed = [this.#alive()?.release].flatMap((release) => release ?? []);
        return ok(
          JSON.stringify(
            listed.map(({ container, engineIdentity }) => ({
              Names: [container],
              State: 'running',
              Labels: { 'slot.identity': engineIdentity },
            })),
          ),
        );
      }
      case 'podman image':
        if (args[1] === 'inspect') return ok(JSON.stringify(this.entrypoint));
        return args[1] === 'exists' && !this.images.has(args[2] ?? '') ? no(1, '') : ok();
      case 'podman pull':
        return no(125, 'Error: registry is not to be reached');
      case 'podman run':
        return ok();
      case 'systemd-run --quiet':
        return ok('Max locked memory         unlimited            unlimited            bytes');
      case 'ss --no-header': {
        if (this.strayOnPort) {
          return ok(
            `LISTEN 0 5 *:7770 *:* users:(("${this.strayOnPort.program}",pid=${this.strayOnPort.pid},fd=3))`,
          );
        }
        return ok(this.#ready() ? 'LISTEN 0 5 *:7770 *:* users:(("python3",pid=100,fd=3))' : '');
      }
      case 'df --output=avail':
        return ok(`Avail\n${100 * 1024 ** 3}`);
      case 'systemd-analyze verify':
        return ok();
      case 'sh -c':
        return ok('/usr/bin/x');
    }
    throw new Error(`the simulated host does not know: ${command} ${args.join(' ')}`);
  }

  async request(method: string, url: string, body: unknown): Promise<HttpAnswer> {
    this.#live(`${method} ${url}`);
    const engine = this.#ready();
    if (engine === undefined) throw new Error('connection refused');
    const { release } = engine;
    const behaviour = this.#behaviour(release);
    const answer = (content: unknown): HttpAnswer => ({ status: 200, body: JSON.stringify(content) });
    if (url.endsWith('/health')) return { status: 200, body: '' };
    if (url.endsWith('/v1/models')) {
      const max_model_len = behaviour.maxModelLength ?? release.maxModelLength;
      return answer({
        data: (behaviour.servedNames ?? release.servedNames).map((id) => ({ id, max_model_len })),
      });
    }
    if (behaviour.dies === 'at first request') {
      engine.dead = true;
      throw new Error('connection reset');
    }
    const wantsTool = (body as { tools?: unknown }).tools !== undefined;
    const message = wantsTool
      ? { tool_calls: [{ function: { name: 'get_weather', arguments: '{"city":"Paris"}' } }] }
      : { content: behaviour.emptyCompletions ? '' : 'The answer is 4.', reasoning: 'two and two' };
    return answer({ choices: [{ finish_reason: wantsTool ? 'tool_calls' : 'stop', message }] });
  }

  async readText(path: string): Promise<string | undefined> {
    this.#live(`read ${path}`);
    if (path === '/proc/meminfo') {
      return `MemTotal:  402653184 kB\nMemAvailable:   ${this.memAvailableKib} kB\n`;
    }
    const engine = this.#alive();
    if (engine && path === '/proc/100/cgroup')
      return `0::/system.slice/${namesOf(this.#service).unit}/payload\n`;
    if (this.strayOnPort && path === `/proc/${this.strayOnPort.pid}/cgroup`) return '0::/user.slice/stray\n';
    if (engine && path === '/proc/100/limits') {
      const limit = this.#behaviour(engine.release).memlock ?? 'unlimited';
      return `Max locked memory         ${limit}            ${limit}            bytes\n`;
    }
    if (engine && path === '/proc/100/environ') {
      return Object.entries(engine.release.environment)
        .map(([name, value]) => `${name}=${value}\0`)
        .join('');
    }
    return this.files.get(path);
  }

  async readPart(path: string, offset: number, length: number): Promise<FilePart | undefined> {
    this.#live(`read part of ${path}`);
    const content = this.files.get(path);
    if (content === undefined) return undefined;
    const bytes = Buffer.from(content, 'latin1');
    return { bytes: bytes.subarray(offset, offset + length), fileBytes: bytes.length };
  }

  async writeDurably(path: string, text: string): Promise<void> {
    this.#live(`write ${path}`);
    this.#needRoom(path);
    this.files.set(path, text);
  }

  async removeDurably(path: string): Promise<void> {
    this.#live(`remove ${path}`);
    this.files.delete(path);
  }

  async append(path: string, text: string): Promise<void> {
    this.#live(`append ${path}`);
    this.#needRoom(path);
    this.files.set(path, (this.files.get(path) ?? '') + text);
  }

  async makeFolder(path: string): Promise<void> {
    this.folders.add(path);
  }

  async list(path: string): Promise<string[]> {
    const names = [...this.files.keys()].filter((file) => file.startsWith(`${path}/`));
    return [...new Set(names.map((file) => file.slice(path.length + 1).split('/')[0] ?? ''))].sort();
  }

  async readLink(path: string): Promise<string | undefined> {
    return this.links.get(path);
  }

  async kindOf(path: string): Promise<'file' | 'folder' | 'other' | 'absent'> {
    if (this.files.has(path)) return 'file';
    return this.folders.has(path) ? 'folder' : 'absent';
  }

  /** A file's times are its content's. */
  async statusOf(path: string): Promise<FileStatus | undefined> {
    const kind = await this.kindOf(path);
    if (kind === 'absent' || kind === 'other') return undefined;
    const content = this.files.get(path) ?? '';
    const time = String(Number.parseInt(sha256(content).slice(0, 12), 16));
    return { kind, device: '1', inode: path, modified: time, changed: time, size: content.length };
  }

  hashFiles(paths: readonly string[], onEnd: (path: string, result: HashResult) => void): Hashing {
    for (const path of paths) {
      const content = this.files.get(path);
      onEnd(path, content === undefined ? { error: 'no such file' } : { sha256: sha256(content) });
    }
    return { ended: Promise.resolve(), bytesRead: () => 0, current: () => [] };
  }

  /** Shape whose engine answers now. */
  serves(): string | undefined {
    return this.#ready()?.release.shape;
  }

  /** File that systemd has loaded the unit from. */
  fragmentPath(): string | undefined {
    return this.#loaded?.path;
  }

  letTimePass(seconds: number): void {
    this.#clock += seconds * 1000;
  }

  #live(call: string): void {
    this.calls.push(call);
    this.whenCalled?.(call);
    if (this.callsToLive === undefined) return;
    if (this.callsToLive === 0) throw new Killed(call);
    this.callsToLive -= 1;
  }

  #needRoom(path: string): void {
    if (this.writesUntilDiskFull === undefined || path.startsWith('/run/')) return;
    if (this.writesUntilDiskFull === 0) throw new Error(`ENOSPC: no space left on device, open '${path}'`);
    this.writesUntilDiskFull -= 1;
  }

  #load(): void {
    const { trialUnitPath, committedUnitPath } = namesOf(this.#service);
    const path = [trialUnitPath, committedUnitPath].find((candidate) => this.files.has(candidate));
    this.#loaded = path === undefined ? undefined : { path, text: this.files.get(path) ?? '' };
  }

  #start(): void {
    const release = this.#releases.find((candidate) => candidate.unit === this.#loaded?.text);
    if (release === undefined || this.#loaded === undefined) return;
    this.starts += 1;
    this.#invocations += 1;
    this.engine = {
      release,
      startedAt: this.#clock,
      invocation: `invocation-${this.#invocations}`,
      dead: this.#behaviour(release).dies === 'at load' || this.failingStarts > 0,
    };
    if (this.failingStarts > 0) this.failingStarts -= 1;
  }

  #restartIfDue(): void {
    if (!this.engine?.dead || this.#clock - this.engine.startedAt < 10_000) return;
    this.#restarts += 1;
    this.#start();
  }

  #behaviour(release: Release): EngineBehaviour {
    return this.behaviours.get(release.shape) ?? {};
  }

  #alive(): RunningEngine | undefined {
    return this.engine?.dead === true ? undefined : this.engine;
  }

  /** Engines load for five seconds. */
  #ready(): RunningEngine | undefined {
    const engine = this.#alive();
    if (engine === undefined || this.#behaviour(engine.release).neverReady) return undefined;
    return this.#clock - engine.startedAt >= 5000 ? engine : undefined;
  }

  #show(): string {
    const { unit } = namesOf(this.#service);
    this.#restartIfDue();
    const state = this.engine?.dead
      ? ['activating', 'auto-restart']
      : this.#ready()
        ? ['active', 'running']
        : this.engine
          ? ['activating', 'start-post']
          : ['inactive', 'dead'];
    const file = this.#loaded && this.files.get(this.#loaded.path);
    const shown = {
      LoadState: this.#loaded ? 'loaded' : 'not-found',
      ActiveState: state[0],
      SubState: state[1],
      Result: this.engine?.dead ? 'exit-code' : 'success',
      FragmentPath: this.#loaded?.path ?? '',
      DropInPaths: this.dropIns,
      NeedDaemonReload: this.#loaded && file !== this.#loaded.text ? 'yes' : 'no',
      ControlGroup: this.engine ? `/system.slice/${unit}` : '',
      MainPID: this.engine ? '99' : '0',
      NRestarts: String(this.#restarts),
      InvocationID: this.engine?.invocation ?? '',
      Job: '',
    };
    return Object.entries(shown)
      .map(([name, value]) => `${name}=${value}`)
      .join('\n');
  }

  #container({ release }: RunningEngine): string {
    return JSON.stringify([
      {
        Id: 'c1',
        State: { Status: 'running', Pid: 100 },
        Config: {
          Cmd: release.arguments,
          Env: [],
          Labels: { 'slot.identity': release.engineIdentity },
        },
      },
    ]);
  }
}
