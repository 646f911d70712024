import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CommandResult, type Outside, realOutside } from '../../../agent/outside.ts';
import { applyPatches, patchedFileFault, patchFindings } from '../../../agent/patches.ts';
import { mountedPatchFault, provePatchesRun, tryPatches } from '../../../agent/patches-in-effect.ts';
import { namesOf } from '../../../shape/names.ts';
import { patchedFilesOf } from '../../../shape/patches.ts';
import { planRelease } from '../../../shape/plan.ts';
import { type Release, sha256 } from '../../../shape/release.ts';
import { readTemplates } from '../../../templates/templates.ts';
import { suppliedHost, suppliedShape } from '../../fixtures/operator-files.ts';
import { patchText } from '../../fixtures/patches.ts';

const original = '"""How much."""\n\nMARKER = "image"\n\n\ndef steps():\n    return 1\n';
const marked = (marker: string) => original.replace('"image"', `"${marker}"`);
/** Itself, not a wrapper on the path that takes its time. */
const python = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], {
  encoding: 'utf8',
}).trim();
const container = { Id: 'c0ffee', State: { Status: 'running', Pid: 100 }, Config: {} };

/**
 * A host on which this machine's Python stands for the image's, and a folder for its packages. A mounted file is
 * copied over its target for the time in which "a container" runs, with its time and size.
 */
class PythonHost {
  readonly root = mkdtempSync(join(tmpdir(), 'patched-image-'));
  readonly packages = join(this.root, 'lib/python3.11/site-packages');
  readonly commands: string[][] = [];
  environment: Record<string, string> = {};
  entrypoint = [join(this.root, 'bin/engine')];
  /** Volumes of the container that runs. */
  mounted: readonly string[] = [];
  mountinfo = '';

  constructor() {
    mkdirSync(join(this.root, 'bin'), { recursive: true });
    writeFileSync(join(this.root, 'bin/engine'), '#!/usr/bin/env python3\n');
    chmodSync(join(this.root, 'bin/engine'), 0o755);
    for (const folder of ['vllm', 'vllm/v1']) this.write(`${folder}/__init__.py`, '');
    this.write('vllm/v1/kv.py', original);
  }

  path(file: string): string {
    return join(this.packages, file);
  }

  write(file: string, content: string | Uint8Array): string {
    mkdirSync(dirname(this.path(file)), { recursive: true });
    writeFileSync(this.path(file), content);
    // As in an image, whose files have one time.
    utimesSync(this.path(file), 0, 0);
    return this.path(file);
  }

  compile(mode: 'timestamp' | 'unchecked-hash'): void {
    const { status } = spawnSync(python, [
      '-m',
      'compileall',
      '-q',
      `--invalidation-mode=${mode}`,
      this.packages,
    ]);
    expect(status).toBe(0);
  }

  #own = (path: string): string =>
    path.startsWith('/proc/100/root')
      ? this.#seen(path.slice('/proc/100/root'.length))
      : /^\/(?:var\/lib\/slot|run)\//.test(path)
        ? this.root + path
        : path;

  #seen(target: string): string {
    const volume = this.mounted.find((words) => words.split(':')[1] === target);
    return volume === undefined ? target : this.root + volume.split(':')[0];
  }

  readonly outside: Outside = {
    ...realOutside,
    kindOf: (path) => realOutside.kindOf(this.#own(path)),
    readPart: (path, offset, length) => realOutside.readPart(this.#own(path), offset, length),
    statusOf: (path) => realOutside.statusOf(this.#own(path)),
    list: (path) => realOutside.list(this.#own(path)),
    removeDurably: (path) => realOutside.removeDurably(this.#own(path)),
    makeFolder: (path) => realOutside.makeFolder(this.#own(path)),
    writeDurably: (path, content) => realOutside.writeDurably(this.#own(path), content),
    readText: async (path) => (path === '/proc/100/mountinfo' ? this.mountinfo : undefined),
    run: async (command, args) => this.#run(command, args),
  };

  #run(command: string, args: readonly string[]): CommandResult {
    this.commands.push([command, ...args]);
    const said = (stdout: string, exitCode = 0): CommandResult => ({ exitCode, stdout, stderr: '' });
    if (command === 'podman' && args[0] === 'image') {
      const answers: Record<string, string> = { mount: '/', inspect: JSON.stringify(this.entrypoint) };
      return said(answers[args[1] ?? ''] ?? '');
    }
    if (command === 'podman' && args[0] === 'exec') return this.#python(args, this.mounted);
    if (command === 'systemd-run') {
      const volumes = args.flatMap((word) => (word.startsWith('--volume=') ? [word.slice(9)] : []));
      return this.#python(args, volumes);
    }
    if (command === 'find') {
      const { status, stdout } = spawnSync(command, [this.packages, ...args.slice(1)]);
      return said(stdout.toString(), status ?? 1);
    }
    throw new Error(`not known: ${command} ${args.join(' ')}`);
  }

  #python(args: readonly string[], volumes: readonly string[]): CommandResult {
    const words = args.slice(args.indexOf('-I')).map((word) => word.replaceAll('$$', '$'));
    const covered = volumes.map((volume) => {
      const [source = '', target = ''] = volume.split(':');
      const aside = `${target}.aside`;
      renameSync(target, aside);
      const { atimeMs, mtimeMs } = statSync(this.root + source);
      writeFileSync(target, readFileSync(this.root + source));
      utimesSync(target, atimeMs / 1000, mtimeMs / 1000);
      return { target, aside };
    });
    const env = {
      PATH: `${dirname(python)}:${process.env.PATH}`,
      PYTHONPATH: this.packages,
      ...this.environment,
    };
    const { status, stdout, stderr } = spawnSync(python, words, { env });
    for (const { target, aside } of covered) renameSync(aside, target);
    return { exitCode: status ?? 1, stdout: stdout.toString(), stderr: stderr.toString() };
  }

  /** The release with these patches, in this order. */
  release(...texts: readonly string[]): Release {
    const patches = texts.map((_, index) => `${index + 1}.patch`);
    const named = new Map(texts.map((text, index) => [`${index + 1}.patch`, text] as const));
    expect(patchedFilesOf(patches, named, '').problems).toEqual([]);
    return planRelease({
      host: { ...suppliedHost(), memoryGate: undefined },
      shape: { ...suppliedShape('glm-w4a16'), patches },
      stack: 'glm-w4a16',
      templates: readTemplates(),
      patches: named,
    });
  }

  patch(after: string, lines: readonly string[] = [], file = 'vllm/v1/kv.py', before = original): string {
    return patchText({ target: this.path(file), before, after, lines });
  }

  /** Where the first patched file lies. */
  made({ service, patches: [first] }: Release): string {
    if (first === undefined) throw new Error('no patch');
    return this.root + namesOf(service).patchedFile(first.patchedSha256, first.target);
  }

  /** Lets the release's container run as its unit starts it. */
  start({ unit }: Release): void {
    this.mounted = [...unit.matchAll(/--volume=(\/var\/lib\/slot\S+)/g)].map(([, volume = '']) => volume);
    this.mountinfo = this.mounted
      .map(
        (volume, index) =>
          `${900 + index} 800 8:1 ${volume.split(':')[0]} ${volume.split(':')[1]} ro,relatime - ext4 /dev/sda1 rw`,
      )
      .join('\n');
  }
}

let host: PythonHost;
beforeEach(() => {
  host = new PythonHost();
});
afterEach(() => rmSync(host.root, { recursive: true, force: true }));

async function refusal(act: Promise<unknown>): Promise<string> {
  return act.then(
    () => 'nothing was refused',
    (error: Error) => error.message,
  );
}

describe('patches are applied to the file of the image', () => {
  it('to the byte, in their order, and kept under the name of the result', async () => {
    const bytes = Buffer.from(
      original.replace('How much.', 'How m\xfcch.').replaceAll('\n', '\r\n'),
      'latin1',
    );
    host.write('vllm/v1/kv.py', bytes);
    const hash = (content: Buffer) => sha256(content);
    const changed = (from: Buffer, a: string, b: string) =>
      Buffer.from(from.toString('latin1').replace(a, b), 'latin1');
    const [one, two] = [
      changed(bytes, '"image"', '"one"'),
      changed(changed(bytes, '"image"', '"one"'), 'return 1', 'return 2'),
    ];
    const head = (base: Buffer, patched: Buffer) =>
      `Target: ${host.path('vllm/v1/kv.py')}\nBase-SHA256: ${hash(base)}\nPatched-SHA256: ${hash(patched)}\n\n--- a/v1/kv.py\n+++ b/v1/kv.py\n`;
    const release = host.release(
      `${head(bytes, one)}@@ -3 +3 @@\n-MARKER = "image"\r\n+MARKER = "one"\r\n`,
      `${head(one, two)}@@ -6,2 +6,2 @@\n def steps():\r\n-    return 1\r\n+    return 2\r\n`,
    );
    await applyPatches(host.outside, release);
    expect(readFileSync(host.made(release))).toEqual(two);
    expect(readFileSync(host.path('vllm/v1/kv.py'))).toEqual(bytes);
  });

  it('and a result that is there is not written again', async () => {
    const release = host.release(host.patch(marked('one')));
    await applyPatches(host.outside, release);
    const { ino } = statSync(host.made(release));
    await applyPatches(host.outside, release);
    expect(statSync(host.made(release)).ino).toBe(ino);
  });

  const drifts: Readonly<Record<string, readonly [content: string | undefined, reason: RegExp]>> = {
    'is another one': [
      original.replace('def steps', 'def stages'),
      /1\.patch: .* was made for .*line 6 is "def stages\(\):", the patch has "def steps\(\):"/,
    ],
    'differs elsewhere': [
      `${original}\n# more\n`,
      /1\.patch would stand as it is on this file; slot patch rebase/,
    ],
    'has the change': [`${marked('one')}# more\n`, /1\.patch is already contained, take it out/],
    'is the result': [marked('one'), /1\.patch is already contained/],
    'has its lines elsewhere': [`# first\n${original}`, /its lines stand at line 2/],
    'has other line ends': [original.replaceAll('\n', '\r\n'), /other line ends/],
    'is empty': ['', /is not there/],
    'is not there': [undefined, /is not in the image, nor a file of its name/],
  };
  it.each(Object.entries(drifts))('and refused when that %s', async (_what, [content, reason]) => {
    const release = host.release(host.patch(marked('one')));
    if (content === undefined) rmSync(host.path('vllm/v1/kv.py'));
    else host.write('vllm/v1/kv.py', content);
    expect(await refusal(applyPatches(host.outside, release))).toMatch(reason);
    expect(() => statSync(host.made(release))).toThrow();
  });

  it('and refused when that is a link, a folder, or went elsewhere', async () => {
    const release = host.release(host.patch(marked('one')));
    const path = host.path('vllm/v1/kv.py');
    renameSync(path, host.path('vllm/kv.py'));
    expect(await refusal(applyPatches(host.outside, release))).toMatch(
      /moved to \S*\/vllm\/kv\.py, unchanged/,
    );
    symlinkSync(host.path('vllm/kv.py'), path);
    expect(await refusal(applyPatches(host.outside, release))).toMatch(/is no regular file.*a link to/);
    rmSync(path);
    mkdirSync(path);
    expect(await refusal(applyPatches(host.outside, release))).toMatch(/is no regular file.*a folder/);
  });

  it('and refused when the result is another than recorded', async () => {
    const text = host.patch(marked('one')).replace(sha256(marked('one')), 'f'.repeat(64));
    expect(await refusal(applyPatches(host.outside, host.release(text)))).toMatch(
      /1\.patch: .* after it, Patched-SHA256 says f+/,
    );
  });

  it('and the one of several is named that makes another file than it says', async () => {
    const steps = ['a', 'b', 'c'].map(marked);
    const [a = '', b = '', c = ''] = steps;
    // Both say another file in between than the first makes.
    const texts = [host.patch(a), host.patch(b, [], undefined, a), host.patch(c, [], undefined, b)];
    const wrong = texts.map((text) => text.replaceAll(sha256(a), 'e'.repeat(64)));
    expect(await refusal(applyPatches(host.outside, host.release(...wrong)))).toMatch(
      /^1\.patch: .* after it, Patched-SHA256 says e+$/,
    );
  });

  it('and a damaged result is found, not trusted', async () => {
    const release = host.release(host.patch(marked('one')));
    const [patched] = release.patches;
    if (patched === undefined) throw new Error('no patch');
    expect(await patchedFileFault(host.outside, release, patched)).toMatch(/is gone/);
    await applyPatches(host.outside, release);
    expect(await patchedFileFault(host.outside, release, patched)).toBeUndefined();
    writeFileSync(host.made(release), 'damage');
    expect(await refusal(applyPatches(host.outside, release))).toMatch(
      /damaged or changed on this host; remove it/,
    );
  });

  it('and what a killed program left of it is removed, what is just being written is not', async () => {
    const release = host.release(host.patch(marked('one')));
    const path = host.made(release);
    mkdirSync(dirname(path), { recursive: true });
    for (const name of ['kv.py.0a1b2c3d', 'kv.py.ffffffff', 'other.py.0a1b2c3d']) {
      writeFileSync(join(dirname(path), name), 'half');
      if (name !== 'kv.py.ffffffff') utimesSync(join(dirname(path), name), 0, 0);
    }
    await applyPatches(host.outside, release);
    expect(readdirSync(dirname(path))).toEqual(['kv.py', 'kv.py.ffffffff', 'other.py.0a1b2c3d']);
  });

  it('and every one that does not fit is named at once', async () => {
    host.write('vllm/v1/other.py', original);
    const release = host.release(
      host.patch(marked('one')),
      host.patch(marked('two'), [], 'vllm/v1/other.py'),
    );
    host.write('vllm/v1/kv.py', `# 1\n${original}`);
    host.write('vllm/v1/other.py', `# 2\n${original}`);
    expect(await refusal(applyPatches(host.outside, release))).toMatch(/1\.patch.*2\.patch/);
    // A preview says so too, one by one.
    expect(await patchFindings(host.outside, release)).toEqual([
      { severity: 'refuse', subject: 'patches', message: expect.stringContaining('1.patch') },
      { severity: 'refuse', subject: 'patches', message: expect.stringContaining('2.patch') },
    ]);
  });
});

describe('a patch is tried in a throw-away container', () => {
  async function tried(release: Release, before: () => void = () => undefined): Promise<string> {
    await applyPatches(host.outside, release);
    before();
    return tryPatches(host.outside, release);
  }

  it('and is in effect when its own code is imported', async () => {
    host.compile('timestamp');
    expect(await tried(host.release(host.patch(marked('other'), ['Marker: MARKER == "other"'])))).toMatch(
      /takes the code of every patched file and imports them/,
    );
  });

  it('with the mounts and the environment of the unit', async () => {
    await tried(host.release(host.patch(marked('one'))));
    const words = host.commands.find(([command]) => command === 'systemd-run') ?? [];
    expect(words.filter((word) => word.startsWith('--volume='))).toHaveLength(1);
    expect(words).toContain('--env=PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True');
    expect(words).toContain('--network=none');
    expect(words.join(' ')).not.toMatch(/--device|--secret/);
  });

  it('also that of a whole package, and of one whose folder is on the path itself', async () => {
    host.environment = { PYTHONPATH: `${host.packages}/vllm/v1:${host.packages}` };
    const file = 'vllm/v1/__init__.py';
    const release = host.release(
      host.patch('LOADED = True\n', ['Marker: LOADED and __name__ == "vllm.v1"'], file, ''),
      host.patch(marked('one'), ['Marker: __name__ == "vllm.v1.kv" and MARKER == "one"']),
    );
    expect(await tried(release)).toMatch(/and imports them/);
  });

  it('also in a folder that is a package without saying so', async () => {
    host.write('vllm/plain/kv.py', original);
    const release = host.release(host.patch(marked('one'), ['Marker: MARKER == "one"'], 'vllm/plain/kv.py'));
    expect(await tried(release)).toMatch(/and imports them/);
  });

  it('and a module that ends Python either way does not keep the next one from being tried', async () => {
    const ending = 'import os\nos.abort()\n';
    host.write('vllm/v1/ends.py', ending);
    const ends = host.patch(`${ending}# more\n`, [], 'vllm/v1/ends.py', ending);
    const broken = host.patch(`from vllm import nothing_of_that_name\n${original}`);
    expect(await refusal(tried(host.release(ends, broken)))).toMatch(
      /kv\.py cannot be imported .*ImportError/,
    );
    expect(await tried(host.release(ends))).toMatch(/not imported, .*vllm\.v1\.ends .*exit code -6/);
  });

  it('with the options that the engine gives its Python', async () => {
    // Isolated, it passes the variable over by which it finds the packages.
    host.entrypoint = [python, '-u', '-X', 'utf8', '-I', '-m', 'vllm'];
    expect(await refusal(tried(host.release(host.patch(marked('one')))))).toMatch(
      /reads no folder that has it/,
    );
  });

  it('and each marker must prove something, whatever those beside it do', async () => {
    const [one, two] = [marked('one'), marked('two')];
    const first = host.patch(one, ['Marker: MARKER != "image" # of both']);
    const vague = host.patch(two, ['Marker: True'], undefined, one);
    expect(await refusal(tried(host.release(first, vague)))).toMatch(/holds without the patch too \(True\)/);
    expect(await tried(host.release(first))).toMatch(/and imports them/);
  });

  it('and is refused when byte code of the same size and time is taken instead', async () => {
    host.compile('timestamp');
    const release = host.release(host.patch(marked('patch')));
    const reason = await refusal(tried(release, () => utimesSync(host.made(release), 0, 0)));
    expect(reason).toMatch(/mounted and not used: .*old byte code .*kv\.cpython-\d+\.pyc/);
  });

  it('and is refused when byte code is taken that no source is compared with', async () => {
    host.compile('unchecked-hash');
    const release = host.release(host.patch(marked('other')));
    expect(await refusal(tried(release))).toMatch(/unchecked byte code.*PYTHONPYCACHEPREFIX/);
    host.environment = { PYTHONPYCACHEPREFIX: join(host.root, 'none') };
    expect(await tryPatches(host.outside, release)).toMatch(/takes the code/);
  });

  it('and is refused when Python imports the module from another place', async () => {
    const elsewhere = join(host.root, 'venv/site-packages');
    for (const file of ['vllm/__init__.py', 'vllm/v1/__init__.py', 'vllm/v1/kv.py']) {
      mkdirSync(dirname(join(elsewhere, file)), { recursive: true });
      writeFileSync(join(elsewhere, file), '');
    }
    host.environment = { PYTHONPATH: `${elsewhere}:${host.packages}` };
    const release = host.release(host.patch(marked('one')));
    expect(await refusal(tried(release))).toMatch(
      /imports this module from \S+venv\/site-packages\/vllm\/v1\/kv\.py/,
    );
    host.environment = { PYTHONPATH: join(host.root, 'nowhere') };
    expect(await refusal(tryPatches(host.outside, release))).toMatch(/reads no folder that has it/);
  });

  it('and is refused when its path leads over a link', async () => {
    const real = host.path('vllm/v2');
    renameSync(host.path('vllm/v1'), real);
    symlinkSync(real, host.path('vllm/v1'));
    expect(await refusal(tried(host.release(host.patch(marked('one')))))).toMatch(
      /leads over a link, the file is \S+\/vllm\/v2\/kv\.py/,
    );
  });

  it.each([
    ['cannot be compiled', original.replace('def', 'dfe'), /cannot compile it: SyntaxError/],
    [
      'needs what the image has not',
      `from vllm import nothing_of_that_name\n${original}`,
      /cannot be imported with its patches: ImportError/,
    ],
    [
      'ends Python',
      `import os\nos._exit(0)\n${original}`,
      /cannot be imported with its patches: Python ended during the import: exit code 0/,
    ],
  ])('and is refused when the module %s', async (_what, after, reason) => {
    expect(await refusal(tried(host.release(host.patch(after))))).toMatch(reason);
  });

  it('and what cannot be imported without the patch either is told, not refused', async () => {
    const before = `import no_gpu_here\n${original}`;
    host.write('vllm/v1/kv.py', before);
    const after = before.replace('"image"', '"one"');
    const plain = host.release(host.patch(after, [], undefined, before));
    expect(await tried(plain)).toMatch(/not imported, as their originals .*vllm\.v1\.kv .*no_gpu_here/);
    const seen = host.release(host.patch(after, ['Marker: MARKER == "one"'], undefined, before));
    expect(await refusal(tried(seen))).toMatch(/marker cannot be seen.*take the line "Marker:" out/);
  });

  it.each([
    ['does not hold', 'MARKER == "two"', /does not hold in the imported module: MARKER == "two"/],
    ['is an error', 'NOTHING', /NameError/],
    ['is no expression', 'x = 1', /SyntaxError/],
    ['holds without the patch', 'steps() == 1', /holds without the patch too/],
  ])('and is refused when its marker %s', async (_what, marker, reason) => {
    const release = host.release(host.patch(marked('one'), [`Marker: ${marker}`]));
    expect(await refusal(tried(release))).toMatch(reason);
  });

  it.each([
    ['env with options', '#!/usr/bin/env -S python3 -E\n', 'reads no folder that has it'],
    ['no Python', '#!/bin/sh\n', 'takes the code'],
  ])('by the Python of the engine: %s', async (_what, start, said) => {
    writeFileSync(join(host.root, 'bin/engine'), start);
    const release = host.release(host.patch(marked('one')));
    // Of -E Python passes the variable over by which it finds the packages.
    const result = await tried(release).catch((error: Error) => error.message);
    expect(result).toContain(said);
  });
});

describe('in the running container', () => {
  async function running(text = host.patch(marked('patch'))): Promise<Release> {
    const release = host.release(text);
    await applyPatches(host.outside, release);
    host.start(release);
    return release;
  }

  it('a patch is in effect, with its marker seen and the GPUs hidden', async () => {
    const release = await running(host.patch(marked('one'), ['Marker: MARKER == "one"']));
    expect(await provePatchesRun(host.outside, release, container)).toBe(
      'the patches are in effect in the running container',
    );
    const words = host.commands.find(([, verb]) => verb === 'exec') ?? [];
    expect(words).toEqual(expect.arrayContaining(['--env=HIP_VISIBLE_DEVICES=-1', 'c0ffee', '-B']));
  });

  it('a module without a marker is not imported', async () => {
    const release = await running(host.patch(`print(1 / 0)\n${original}`));
    expect(await provePatchesRun(host.outside, release, container)).toContain('in effect');
  });

  it('a patch that is mounted and not used is a fault', async () => {
    host.compile('timestamp');
    const release = await running();
    utimesSync(host.made(release), 0, 0);
    expect(await refusal(provePatchesRun(host.outside, release, container))).toMatch(/mounted and not used/);
    host.mounted = [];
    expect(await refusal(provePatchesRun(host.outside, release, container))).toMatch(
      /the container sees sha256/,
    );
  });

  it('a Python that does not answer is a fault', async () => {
    const release = await running();
    const outside = {
      ...host.outside,
      run: async () => ({ exitCode: 125, stdout: '', stderr: 'no such container' }),
    };
    expect(await refusal(provePatchesRun(outside, release, container))).toMatch(
      /does not answer \(exit 125\): no such/,
    );
  });

  it('the process has the files that were made', async () => {
    const release = await running();
    expect(await mountedPatchFault(host.outside, release, 100)).toBeUndefined();
    const made = host.mountinfo;
    host.mountinfo = made.replace(' ro,', ' rw,');
    expect(await mountedPatchFault(host.outside, release, 100)).toMatch(/not mounted read-only/);
    host.mountinfo = '';
    expect(await mountedPatchFault(host.outside, release, 100)).toMatch(/nothing is mounted over/);
  });

  it('a file that was replaced, removed or edited since the start is a fault', async () => {
    const release = await running();
    const path = host.made(release);
    const started = { ...host.outside, statusOf: host.outside.statusOf };
    const atStart = await host.outside.statusOf(`/proc/100/root${host.path('vllm/v1/kv.py')}`);
    started.statusOf = async (asked) => (asked.startsWith('/proc/') ? atStart : host.outside.statusOf(asked));
    writeFileSync(path, 'edited in place');
    expect(await mountedPatchFault(started, release, 100)).toMatch(/has sha256/);
    writeFileSync(`${path}.new`, marked('patch'));
    renameSync(`${path}.new`, path);
    expect(await mountedPatchFault(started, release, 100)).toMatch(/replaced after the engine's start/);
    rmSync(path);
    expect(await mountedPatchFault(started, release, 100)).toMatch(/removed after the engine's start/);
  });
});
