import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Change,
  hostChanges,
  hostStack,
  laidOver,
  type ShapeStack,
  shapeChanges,
  shapeStacks,
} from '../../lab/overlay.ts';
import { openStage, type Stage } from '../../lab/stage.ts';
import { cacheHome } from '../../lab/vm/cache-owner.ts';
import { fingerprintOf } from '../../remote/ssh.ts';
import { HostView } from './host-view.ts';

/*
 * README.md, "The first day on your own host", command by command, on a lab host that starts bare. What is run
 * is what stands there; only values of the reader's own are replaced, by this table and by `layLab`.
 */
const placeholders = (): readonly (readonly [written: string, onLab: string])[] => [
  ['ssh dank@192.0.2.7', `ssh -F ${sshConfig} dank@192.0.2.7`],
  ['192.0.2.7', stage.lab.address],
  ['docker.io/tcclaviger/vllm', stage.images.repository],
  ['sha256:da4029666…', stage.images.vllm],
];

const qwen = 'qwen-fp8-mtp4';
const project = join(import.meta.dirname, '..', '..');
const section = 'The first day on your own host';

interface Ran {
  readonly exitCode: number;
  readonly output: string;
}

/** Somebody with a checkout, a home and a shell that remembers its exports. */
class Operator {
  readonly checkout: string;
  readonly home: string;
  readonly #exports: string;

  private constructor(folder: string) {
    this.checkout = join(folder, 'checkout');
    this.home = join(folder, 'home');
    this.#exports = join(folder, 'exports');
  }

  /** With a copy of the project's files as they are under version control or about to be. */
  static async arrive(folder: string): Promise<Operator> {
    const operator = new Operator(folder);
    const listed = await execa('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
      cwd: project,
    });
    const names = listed.stdout.split('\0').filter((name) => name !== '');
    for (const name of names.filter((name) => existsSync(join(project, name)))) {
      await cp(join(project, name), join(operator.checkout, name));
    }
    await operator.#settleIn();
    return operator;
  }

  /** With the files that `first` has by now, but for what is not under version control. */
  static async follow(first: Operator, folder: string): Promise<Operator> {
    const operator = new Operator(folder);
    const own = ['node_modules', '.slot'].map((name) => join(first.checkout, name));
    await cp(first.checkout, operator.checkout, { recursive: true, filter: (path) => !own.includes(path) });
    await operator.#settleIn();
    return operator;
  }

  async #settleIn(): Promise<void> {
    await symlink(join(project, 'node_modules'), join(this.checkout, 'node_modules'));
    await mkdir(join(this.home, '.ssh'), { recursive: true });
    await cp(stage.lab.privateKeyPath, join(this.home, '.ssh', 'id_ed25519'));
    await writeFile(this.#exports, '');
  }

  /** Leaves out of the stack files what belongs to somebody else's backend. */
  async forgetSalts(): Promise<void> {
    for (const stack of [hostStack, ...shapeStacks]) {
      const text = await this.stackFile(stack);
      await writeFile(this.#pathOf(stack), text.replace(/^encryptionsalt: .*\n/m, ''));
    }
  }

  async inheritExports(from: Operator): Promise<void> {
    await cp(from.#exports, this.#exports);
  }

  async shell(commands: string): Promise<Ran> {
    const script = `set -euo pipefail\n. ${this.#exports}\n${onLab(commands)}\nexport -p >${this.#exports}\n`;
    const result = await execa('bash', ['-c', script], {
      cwd: this.checkout,
      reject: false,
      all: true,
      stdin: 'ignore',
      env: {
        ...stage.toolchain.env,
        HOME: this.home,
        XDG_CACHE_HOME: cacheHome(),
        PULUMI_SKIP_CONFIRMATIONS: 'true',
      },
    });
    return { exitCode: result.exitCode ?? 255, output: result.all };
  }

  async succeeds(commands: string): Promise<string> {
    const { exitCode, output } = await this.shell(commands);
    expect(exitCode, `${commands}\n${output}`).toBe(0);
    return output;
  }

  async fails(commands: string): Promise<string> {
    const { exitCode, output } = await this.shell(commands);
    expect(exitCode, `${commands}\n${output}`).not.toBe(0);
    return output;
  }

  stackFile(stack: string): Promise<string> {
    return readFile(this.#pathOf(stack), 'utf8');
  }

  /** Lays over a stack file what differs on a lab host and no command of the section sets. */
  async layLab(stack: typeof hostStack | ShapeStack): Promise<void> {
    await writeFile(this.#pathOf(stack), laidOver(await this.stackFile(stack), labDifferences(stack)));
  }

  #pathOf(stack: string): string {
    return join(this.checkout, `Pulumi.${stack}.yaml`);
  }
}

/** There is no GPU, little memory, an image of another name, and an engine that loads seconds. */
function labDifferences(stack: typeof hostStack | ShapeStack): Change[] {
  const { lab, images } = stage;
  if (stack === hostStack) {
    const beyondTheReadme = ['gpus', 'deviceFiles', 'memoryGate'];
    return hostChanges(lab).filter(([path]) => beyondTheReadme.includes(nameOf(path)));
  }
  const image = ['config', 'slot:shape', 'engine', 'image'];
  const byTheReadme = ['hostsFolder', 'image'];
  return [
    ...shapeChanges(stack, lab, images, '').filter(([path]) => !byTheReadme.includes(nameOf(path))),
    [[...image, 'repository'], images.repository],
    [[...image, 'recordedPrefix'], undefined],
  ];
}

/** Of the configuration key at the end of a path. */
function nameOf(path: readonly string[]): string {
  return path.at(-1)?.replace('slot:', '') ?? '';
}

let stage: Stage;
let host: HostView;
let folder: string;
let sshConfig: string;
let blocks: ReadonlyMap<string, readonly string[]>;
let first: Operator;

beforeAll(async () => {
  blocks = commandsOf(await readFile(join(project, 'README.md'), 'utf8'));
  stage = await openStage({ kind: 'nspawn', progress: console.log });
  host = new HostView(stage.lab);
  folder = await mkdtemp(join(tmpdir(), 'slot-first-day-'));
  sshConfig = join(folder, 'ssh-config');
  const { address, hostKey, privateKeyPath } = stage.lab;
  await writeFile(join(folder, 'known-hosts'), `${address} ${hostKey}\n`);
  await writeFile(
    sshConfig,
    `IdentityFile ${privateKeyPath}\nIdentitiesOnly yes\nUserKnownHostsFile ${join(folder, 'known-hosts')}\n`,
  );
  // What an operator's host has and a lab host lacks: two GPUs, and the image of an engine that served before.
  await host.root(
    "printf '%s\\n' '#!/bin/sh' \"echo '0000:03:00.0 Display controller: lab'\" \"echo '0000:07:00.0 Display controller: lab'\" >/usr/bin/lspci; chmod 755 /usr/bin/lspci",
  );
  await host.root(`podman pull --quiet ${stage.images.repository}@${stage.images.vllm}`);
  first = await Operator.arrive(join(folder, 'first'));
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await stage?.close();
});

describe('the first day on one’s own host', () => {
  it('begins with a backend and a passphrase that nobody else reads', async () => {
    const [setUp] = commands('Backend and passphrase', 1);
    await first.succeeds(setUp);
    const { mode, size } = await stat(join(first.home, 'slot-passphrase'));
    expect(mode & 0o077).toBe(0);
    expect(size).toBeGreaterThan(30);
  });

  it('makes the stacks, and adds to the files nothing but a salt', async () => {
    const [init] = commands('Stacks for the files', 1);
    await first.succeeds(init);
    for (const stack of [hostStack, ...shapeStacks]) {
      const text = await first.stackFile(stack);
      expect(text).toMatch(/^encryptionsalt: v1:/m);
      const original = await readFile(join(project, `Pulumi.${stack}.yaml`), 'utf8');
      expect(text.replace(/^encryptionsalt: .*\n/m, '')).toBe(original);
    }
  });

  it('names what the host’s file lacks, with the commands that find and set it', async () => {
    const [preview] = commands('The host', 7);
    const output = await first.fails(preview);
    for (const key of ['address', 'hostKey', 'gpus']) {
      expect(output).toContain(`Pulumi.dankserver.yaml: slot:host.${key}: is required`);
    }
    expect(output).toContain('find it: ssh-keyscan -t ed25519');
    expect(output).toContain(
      "set it:  pulumi config set --path 'slot:host.gpus[0]' 0000:03:00.0 -s dankserver",
    );
  });

  it('fills the host’s file in, with the key that the host really has', async () => {
    const [, address, hostKey, privateKey, publicName, gpus] = commands('The host', 7);
    await first.succeeds(address);
    expect(await first.succeeds(hostKey)).toContain(fingerprintOf(stage.lab.hostKey));
    await first.succeeds(privateKey);
    await first.succeeds(publicName);
    expect(await first.succeeds(gpus)).toContain('0000:07:00.0');
    const text = await first.stackFile(hostStack);
    expect(text).toContain(`address: ${stage.lab.address}`);
    expect(text).toContain(`hostKey: ${stage.lab.hostKey}`);
    expect(text).toMatch(/- "0000:03:00.0"\n\s+- "0000:07:00.0"/);
    expect(text).toContain('# The gate of the runbook');
  });

  it('sets the host up', async () => {
    const [up] = commands('The host', 7).slice(-1);
    await first.layLab(hostStack);
    expect(await first.succeeds(up ?? '')).toContain('the slot is empty');
  });

  it('finds the image’s digest in the store of root alone', async () => {
    const [preview, findAsRoot, findAsLogin, set] = commands('The image’s digest', 4);
    await first.layLab(qwen);
    await first.layLab('glm-w4a16');
    const missing = await first.fails(preview);
    expect(missing).toContain('slot:shape.engine.image.digest: is required');
    expect(missing).toContain(`find it: ssh dank@${stage.lab.address} 'sudo podman image ls --digests`);
    expect(missing).toContain(`find it: ssh dank@${stage.lab.address} 'podman image ls --digests`);
    expect(await first.succeeds(findAsRoot)).toContain(stage.images.vllm);
    // A lab host's login has no image store at all, for want of newuidmap: an error there, an empty list elsewhere.
    expect((await first.shell(findAsLogin)).output).not.toContain(stage.images.vllm);
    await first.succeeds(set);
    expect(await first.stackFile('glm-w4a16')).toContain(stage.images.vllm);
  });

  it('refuses where a unit made by hand has the name, and touches nothing', async () => {
    const unit = '/etc/systemd/system/frank-archon.service';
    await host.root(
      `printf '[Service]\\nExecStart=/bin/sleep infinity\\n' >${unit}; systemctl daemon-reload; systemctl start frank-archon`,
    );
    const before = await host.invocation();
    const output = await first.fails(`pulumi up -s ${qwen}`);
    expect(output).toContain('refused, nothing was touched');
    expect(output).toContain(`${unit} is a unit of this name that was not installed by a cutover`);
    expect(await host.invocation()).toBe(before);
    await host.root(`systemctl stop frank-archon; rm ${unit}; systemctl daemon-reload`);
  });

  it('serves the first shape, and status says so', async () => {
    const [serve] = commands('The first shape', 1);
    const output = await first.succeeds(serve);
    expect(output).toContain(`cutover to ${qwen}: no outage, nothing serves now`);
    expect(output).toContain(`${qwen} serves and is proved`);
    expect(output).toMatch(new RegExp(`${qwen} is serving, release [0-9a-f]{12}`));
    expect(await host.servedNames()).toEqual(['qwen38-flash-next', 'wire']);
  });
});

describe('a second operator', () => {
  it('with the same backend sees nothing to do', async () => {
    const [preview] = commands('A second operator with the same backend', 1);
    const second = await Operator.follow(first, join(folder, 'second'));
    await second.inheritExports(first);
    const output = await second.succeeds(preview);
    expect(output).toMatch(new RegExp(`${qwen}, release .* serving, .* nothing to change`));
    expect(output).toMatch(/Resources:\s+\d+ unchanged/);
  });

  it('with another passphrase cannot use the salt of the first', async () => {
    const stranger = await Operator.follow(first, join(folder, 'stranger'));
    const [own] = commands('A second operator with his own backend', 1);
    expect(await stranger.fails(own)).toContain('incorrect passphrase');
  });

  it('with his own backend sees the same occupant, and his up restarts nothing', async () => {
    const [own] = commands('A second operator with his own backend', 1);
    const third = await Operator.follow(first, join(folder, 'third'));
    await third.forgetSalts();
    const before = await host.invocation();
    const output = await third.succeeds(own);
    expect(output).toMatch(new RegExp(`${qwen}, release .* serving, .* nothing to change`));
    expect(output).toContain('the engine was not restarted');
    expect(await host.invocation()).toBe(before);

    const firstAgain = await first.succeeds(`pulumi up -s ${qwen}`);
    expect(firstAgain).not.toMatch(/\d+ (created|updated|replaced)/);
  });
});

it('a removed stack takes its file with it, unless that is to be preserved', async () => {
  const file = () => first.stackFile('r9v-q8_0');
  await first.succeeds('pulumi stack rm --yes --preserve-config -s r9v-q8_0');
  expect(await file()).toContain('slot:shape');
  await first.succeeds('pulumi stack init r9v-q8_0; pulumi stack rm --yes -s r9v-q8_0');
  await expect(file()).rejects.toThrow('ENOENT');
});

it('every command and every placeholder of the section was used', () => {
  const all = [...blocks.values()].flat();
  expect(all.filter((block) => !used.has(block))).toEqual([]);
  expect(placeholders().filter(([written]) => !all.some((block) => block.includes(written)))).toEqual([]);
});

const used = new Set<string>();

/** The command blocks under a heading of the section; fails where README.md has another number of them. */
function commands<N extends number>(heading: string, count: N): Tuple<N> {
  const found = blocks.get(heading) ?? [];
  expect(found, `command blocks under "${heading}" of README.md`).toHaveLength(count);
  for (const block of found) used.add(block);
  return found as Tuple<N>;
}
type Tuple<N extends number, T extends string[] = []> = T['length'] extends N ? T : Tuple<N, [...T, string]>;

function commandsOf(readme: string): Map<string, readonly string[]> {
  const text = readme.split(/^## /m).find((part) => part.startsWith(section)) ?? '';
  const parts = text.split(/^### /m).slice(1);
  return new Map(
    parts.map((part) => [
      part.slice(0, part.indexOf('\n')).replaceAll("'", '’'),
      [...part.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block),
    ]),
  );
}

function onLab(commandLines: string): string {
  return placeholders().reduce((text, [written, value]) => text.replaceAll(written, value), commandLines);
}
