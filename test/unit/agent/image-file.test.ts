import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { imageFiles } from '../../../agent/image-file.ts';
import { type CommandResult, type Outside, realOutside } from '../../../agent/outside.ts';
import { compileInImage } from '../../../agent/python-compile.ts';
import type { ImageAnswer, ImageFile } from '../../../shape/image-files.ts';
import { sha256 } from '../../../shape/release.ts';

const image = `registry.example/vllm@sha256:${'a'.repeat(64)}`;
const packages = '/usr/local/lib/python3.12/dist-packages';
const target = `${packages}/vllm/models/model.py`;

let root: string;
let commands: string[];
let onCommand: (words: string) => void;
let answers: Record<string, Partial<CommandResult>>;

const own = (path: string): string => (path.startsWith('/run/') ? root + path : path);

/** This machine's files, and a podman that answers as it is told. */
const outside: Outside = {
  ...realOutside,
  list: (path) => realOutside.list(own(path)),
  readText: (path) => realOutside.readText(own(path)),
  makeFolder: (path) => realOutside.makeFolder(own(path)),
  writeDurably: (path, content) => realOutside.writeDurably(own(path), content),
  removeDurably: (path) => realOutside.removeDurably(own(path)),
  async run(command, args, options) {
    if (command === 'find') return realOutside.run(command, args, options);
    const words = [command, ...args].join(' ');
    commands.push(words);
    onCommand(words);
    const known = Object.keys(answers).find((beginning) => words.startsWith(beginning)) ?? '';
    const answer = { exitCode: 0, stdout: '', stderr: '', ...answers[known] };
    for (const line of answer.stdout.split('\n')) options?.onLine?.(line);
    return answer;
  },
};

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'slot-image-'));
  commands = [];
  onCommand = () => undefined;
  answers = { 'podman image mount': { stdout: `${root}/merged\n` } };
  put(target, 'a = 1\r\nb = "ä"');
});

afterEach(() => rmSync(root, { recursive: true }));

function put(path: string, content: string | Uint8Array): void {
  const place = join(root, 'merged', path);
  mkdirSync(dirname(place), { recursive: true });
  writeFileSync(place, content);
}

function link(path: string, to: string): void {
  mkdirSync(dirname(join(root, 'merged', path)), { recursive: true });
  symlinkSync(to, join(root, 'merged', path));
}

async function ask(path: string, expected?: string): Promise<ImageFile | undefined> {
  const files = [{ path, ...(expected !== undefined && { sha256: expected }) }];
  const [answer] = await imageFiles(outside, { images: [{ image, pull: false, files }] }, () => undefined);
  if (answer?.kind !== 'read') throw new Error(answer?.reason);
  return answer.files[0];
}

const asText = (file: ImageFile | undefined) =>
  file?.kind === 'file' ? Buffer.from(file.content, 'base64').toString() : file;

const one = (pull: boolean) => ({ images: [{ image, pull, files: [{ path: target }] }] });

describe('a file of an image', () => {
  it('is told byte for byte, and the image is let go of', async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
    put(target, bytes);
    const file = await ask(target);
    expect(file?.kind === 'file' && Uint8Array.from(Buffer.from(file.content, 'base64'))).toEqual(bytes);
    expect(commands).toEqual([
      `podman image exists ${image}`,
      `podman image mount ${image}`,
      `podman image unmount ${image}`,
    ]);
  });

  it('that a killed process left mounted is let go of by the next, and no other', async () => {
    const mounts = join(root, 'run/slot-image-mounts');
    const left = 'registry.example/left@sha256:1';
    mkdirSync(mounts, { recursive: true });
    writeFileSync(join(mounts, '4194305'), left);
    writeFileSync(join(mounts, '1'), 'of a process that lives');
    await ask(target);
    expect(commands.filter((words) => words.includes('unmount'))).toEqual([
      `podman image unmount ${left}`,
      `podman image unmount ${image}`,
    ]);
    expect(readdirSync(mounts)).toEqual(['1']);
  });

  it('is known as mounted before it is, and not any more where that fails', async () => {
    const mounts = join(root, 'run/slot-image-mounts');
    onCommand = (words) => {
      if (words.includes('mount')) expect(readdirSync(mounts)).toEqual([String(process.pid)]);
    };
    await ask(target);
    answers['podman image mount'] = { exitCode: 125 };
    await expect(ask(target)).rejects.toThrow('podman image mount');
    expect(readdirSync(mounts)).toEqual([]);
  });

  it('is found behind links of folders, absolute ones beginning at the image', async () => {
    link('/venv', '/usr/local/lib/python3.12/dist-packages');
    link('/opt/short', '../venv/vllm');
    expect(asText(await ask('/venv/vllm/models/model.py'))).toBe('a = 1\r\nb = "ä"');
    expect(asText(await ask('/opt/short/models/model.py'))).toBe('a = 1\r\nb = "ä"');
  });

  it('is never one of the host: a link cannot lead out of the image', async () => {
    writeFileSync(join(root, 'secret.py'), 'of the host');
    link('/out', '../../../../..');
    link('/absolute', root);
    expect(await ask(`/out${root}/secret.py`)).toMatchObject({ kind: 'absent' });
    expect(await ask('/absolute/secret.py')).toMatchObject({ kind: 'absent' });
    expect(await ask('/../secret.py')).toMatchObject({ kind: 'absent' });
    expect(await ask('/usr/../../secret.py')).toMatchObject({ kind: 'absent' });
  });

  it.each([
    ['a folder', packages],
    ['a link to model.py', `${packages}/vllm/models/alias.py`],
    ['too large for a patch: 5000000 bytes, at most 4194304', '/large.py'],
  ])('is not taken where it is %s', async (what, path) => {
    link(`${packages}/vllm/models/alias.py`, 'model.py');
    put('/large.py', new Uint8Array(5_000_000));
    expect(await ask(path)).toEqual({ kind: 'not regular', path, what });
  });

  it('is absent where its folder is a file, and where links go round', async () => {
    link('/round', 'about');
    link('/about', 'round');
    expect(await ask(`${target}/inner.py`)).toMatchObject({ kind: 'absent' });
    expect(await ask('/round/model.py')).toMatchObject({ kind: 'absent' });
  });
});

describe('a file that is not there', () => {
  const gone = '/usr/local/lib/python3.11/dist-packages/vllm/models/model.py';

  it("is looked for by its name in its package, whichever Python's", async () => {
    put(`${packages}/vllm/other/model.py`, 'b = 2');
    put(`${packages}/unrelated/model.py`, 'c = 3');
    const found = await ask(gone);
    expect(found?.kind === 'absent' && found.elsewhere.map(({ path }) => path)).toEqual([
      target,
      `${packages}/vllm/other/model.py`,
    ]);
  });

  it('is found first under another name where its content is the expected one', async () => {
    put(`${packages}/vllm/zz renamed\n.py`, 'expected');
    const found = await ask(gone, sha256('expected'));
    const [first] = found?.kind === 'absent' ? found.elsewhere : [];
    expect(first?.path).toBe(`${packages}/vllm/zz renamed\n.py`);
    expect(Buffer.from(first?.content ?? '', 'base64').toString()).toBe('expected');
  });

  it('is not looked for outside of Python packages', async () => {
    put('/etc/model.py', 'x');
    expect(await ask('/srv/model.py')).toEqual({ kind: 'absent', path: '/srv/model.py', elsewhere: [] });
  });
});

describe('an image', () => {
  const told = async (
    pull: boolean,
    say = (_: string): void => undefined,
  ): Promise<ImageAnswer | undefined> => (await imageFiles(outside, one(pull), say))[0];

  it.each([
    [{ exitCode: 1 }, 'absent on this host'],
    [{ exitCode: 125, stderr: 'storage is broken' }, 'storage is broken'],
  ])('that cannot be seen is told (%j), and nothing is pulled', async (answer, reason) => {
    answers['podman image exists'] = answer;
    expect(await told(false)).toMatchObject({ kind: 'not read', reason: expect.stringContaining(reason) });
    expect(commands.join()).not.toMatch(/pull|mount/);
  });

  it('does not keep another one from being read', async () => {
    answers[`podman image exists ${image}`] = { exitCode: 1 };
    const images = [...one(false).images, { image: 'localhost/there@sha256:1', pull: false, files: [] }];
    expect((await imageFiles(outside, { images }, () => undefined)).map(({ kind }) => kind)).toEqual([
      'not read',
      'read',
    ]);
  });

  it('that cannot be mounted is told with the reason', async () => {
    answers['podman image mount'] = { exitCode: 125, stderr: 'no such layer' };
    expect(await told(false)).toMatchObject({
      kind: 'not read',
      reason: 'podman image mount: no such layer',
    });
  });

  it('is pulled only where that is asked for and it is not there, behind what serves, and tells so', async () => {
    await told(true);
    expect(commands.join()).not.toContain('podman pull');
    answers['podman image exists'] = { exitCode: 1 };
    answers.nice = { stdout: 'Copying blob 1a2b\n' };
    const say = vi.fn();
    expect(await told(true, say)).toMatchObject({ reason: 'absent on this host' });
    expect(commands).toContain(`nice -n 19 ionice -c idle podman pull ${image}`);
    expect(say.mock.calls.flat()).toEqual([`pulling ${image}`, 'Copying blob 1a2b', 'pulled in 0 s']);
  });

  it('whose pull fails is told with what podman said last', async () => {
    answers['podman image exists'] = { exitCode: 1 };
    answers.nice = { exitCode: 125, stderr: 'Trying to pull\nError: manifest unknown\n' };
    expect(await told(true)).toMatchObject({ reason: 'cannot be pulled: Error: manifest unknown' });
  });
});

describe('a source text', () => {
  const request = { image, target, source: Buffer.from('a = 1\n').toString('base64') };

  it.each([
    [{ stdout: '' }, { kind: 'compiles' }],
    [
      { stdout: 'invalid syntax (model.py, line 1)\n' },
      { kind: 'does not compile', reason: 'invalid syntax (model.py, line 1)' },
    ],
    [
      { exitCode: 127, stderr: 'Error: crun: executable file `python3` not found' },
      { kind: 'not asked', reason: expect.stringContaining('python3` not found') },
    ],
  ])("is judged by the image's Python: %j", async (answer, told) => {
    answers['systemd-run'] = answer;
    expect(await compileInImage(outside, request)).toEqual(told);
  });

  it('is not handed to an image that is not there, nor where no command line would hold it', async () => {
    const noise = randomBytes(200_000).toString('base64');
    expect(await compileInImage(outside, { ...request, source: noise })).toMatchObject({ kind: 'not asked' });
    answers['podman image exists'] = { exitCode: 1 };
    expect(await compileInImage(outside, request)).toMatchObject({ kind: 'not asked' });
    expect(commands.join()).not.toContain('systemd-run');
  });
});
