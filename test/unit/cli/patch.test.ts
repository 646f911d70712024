import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseDocument } from 'yaml';
import { check } from '../../../cli/patch/check.ts';
import { judge } from '../../../cli/patch/hunks.ts';
import { newPatch } from '../../../cli/patch/new.ts';
import { rebase } from '../../../cli/patch/rebase.ts';
import { record } from '../../../cli/patch/record.ts';
import { notesOf, patchFileOf } from '../../../cli/patch/text.ts';
import { SshFailure } from '../../../remote/ssh.ts';
import type { ImageFilesRequest } from '../../../shape/image-files.ts';
import { parsePatchFile } from '../../../shape/patches.ts';
import { sha256 } from '../../../shape/release.ts';
import { completedFile, operatorFile } from '../../fixtures/operator-files.ts';

type Files = Record<string, string>;

const host = vi.hoisted(() => ({
  requests: [] as ImageFilesRequest[],
  /** Files by path, by image; an image that is not among them is not on the host. */
  images: {} as Record<string, Record<string, string>>,
  answer: undefined as Error | { exitCode: number; stdout: string; stderr: string } | undefined,
  /** What the image's Python says to a text that this machine's does not take. */
  compiles: { kind: 'does not compile', reason: 'line 17' } as object,
}));

vi.mock(import('../../../remote/ssh.ts'), async (importActual) => ({
  ...(await importActual()),
  runOnHost: async (_target, command, options) => {
    if (command.includes('slot compile-python')) {
      return { exitCode: 0, stdout: JSON.stringify(host.compiles), stderr: '' };
    }
    expect(command).toContain('slot image-files');
    const request = JSON.parse(options?.input ?? '') as ImageFilesRequest;
    host.requests.push(request);
    if (host.answer instanceof Error) throw host.answer;
    if (host.answer !== undefined) return host.answer;
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    const images = request.images.map(({ image, files }) => {
      const there = host.images[image];
      if (there === undefined) return { kind: 'not read', image, reason: 'absent on this host' };
      const told = files.map(({ path, sha256: wanted }) => {
        const text = there[path];
        if (text === 'FOLDER') return { kind: 'not regular', path, what: 'a folder' };
        if (text !== undefined) return { kind: 'file', path, content: base64(text) };
        const elsewhere = Object.entries(there)
          .filter(([other, found]) => other.endsWith('/model.py') || sha256(found) === wanted)
          .map(([other, found]) => ({ path: other, content: base64(found) }));
        return { kind: 'absent', path, elsewhere };
      });
      return { kind: 'read', image, files: told };
    });
    return { exitCode: 0, stdout: JSON.stringify({ images }), stderr: '' };
  },
}));

const repository = 'docker.io/tcclaviger/vllm';
const oldDigest = `sha256:da4029666${'0'.repeat(55)}`;
const newDigest = `sha256:da4029666${'1'.repeat(55)}`;
const packages = '/usr/local/lib/python3.12/dist-packages/vllm';
const model = `${packages}/models/model.py`;
const stack = 'glm-w4a16';

const method = (value: string) => `    def forward(self, x):\n        y = x\n        return ${value}\n`;
const original = `import os\n\n\nclass A:\n${method('x')}\n\nclass B:\n${method('x + 1')}\n\nEND = 1\n`;
const changed = original.replace('return x + 1', 'return x + 2');

let folder: string;
let said: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slot-patch-'));
  write('Pulumi.dankserver.yaml', completedFile('dankserver'));
  writeShape([]);
  host.requests.length = 0;
  host.images = { [`${repository}@${oldDigest}`]: { [model]: original } };
  host.answer = undefined;
  host.compiles = { kind: 'does not compile', reason: 'line 17' };
  said = '';
  const hear = (text: string | Uint8Array): boolean => {
    said += text;
    return true;
  };
  vi.spyOn(process.stdout, 'write').mockImplementation(hear);
  vi.spyOn(process.stderr, 'write').mockImplementation(hear);
});

afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

function write(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
}

function read(path: string): string {
  return readFileSync(join(folder, path), 'utf8');
}

function writeShape(patches: readonly string[], { name = stack, digest = oldDigest } = {}): void {
  const document = parseDocument(completedFile(stack));
  document.deleteIn(['config', 'slot:shape', 'model']);
  document.setIn(['config', 'slot:shape', 'engine', 'image', 'digest'], digest);
  document.setIn(['config', 'slot:shape', 'patches'], patches);
  write(`Pulumi.${name}.yaml`, document.toString());
}

/** Lays patches down as `slot patch new` writes them, and has the shape name them. */
function lay(patches: Record<string, Uint8Array>): void {
  for (const [name, content] of Object.entries(patches)) write(`patches/${name}`, content);
  write(
    'patches/SHA256SUMS',
    Object.entries(patches)
      .map(([name, content]) => `${sha256(content)}  ${name}\n`)
      .join(''),
  );
  writeShape(Object.keys(patches));
}

function patch(base = original, patched = changed, target = model): Buffer {
  const [from, to] = [Buffer.from(base), Buffer.from(patched)];
  return patchFileOf({ target, base: from, patched: to, notes: ['Why: a test'] });
}

/** Undefined: the image is not on the host. */
function imageHas(files: Files | undefined, digest = oldDigest): void {
  if (files === undefined) delete host.images[`${repository}@${digest}`];
  else host.images[`${repository}@${digest}`] = files;
}

function hostFails(answer: typeof host.answer): void {
  host.answer = answer;
}

describe('slot patch check', () => {
  it('says of each patch that it applies, having asked the host once for each file', async () => {
    const further = changed.replace('END = 1', 'END = 2');
    lay({ 'one.patch': patch(), 'two.patch': patch(changed, further) });
    writeShape(['one.patch', 'two.patch'], { name: 'other' });
    expect(await check(folder, [])).toBe(0);
    expect(said).toContain(`ok    one.patch: applies to ${model}`);
    expect(said).toContain(`ok    two.patch: applies to ${model}`);
    expect(host.requests).toHaveLength(1);
    expect(host.requests[0]?.images.map(({ files, pull }) => [files.map(({ path }) => path), pull])).toEqual([
      [[model], false],
    ]);
  });

  it.each([
    ['wrong base: it was made for sha256', { [model]: `# new\n${original}` }],
    ['its lines are all there', { [model]: `# new\n${original}` }],
    ['already contained', { [model]: changed }],
    [
      'line 12 is "        z = x", the patch has "        y = x"',
      { [model]: original.replace(/y = x(?!.*y = x)/s, 'z = x') },
    ],
    ['is not in the image\n        of that name or content there: /x/model.py', { '/x/model.py': original }],
    ['in the image is a folder, not a regular file', { [model]: 'FOLDER' }],
  ])('is a fault with %j', async (text, files) => {
    lay({ 'one.patch': patch() });
    imageHas(files as Files);
    expect(await check(folder, [stack])).toBe(1);
    expect(said).toContain('FAULT one.patch');
    expect(said).toContain(text);
  });

  it('a patch that makes another file than it declares is a fault', async () => {
    const text = patch()
      .toString()
      .replace(/^Patched-SHA256: .*$/m, `Patched-SHA256: ${'1'.repeat(64)}`);
    lay({ 'one.patch': Buffer.from(text) });
    expect(await check(folder, [stack])).toBe(1);
    expect(said).toContain(`it makes a file with sha256 ${sha256(changed)}`);
  });

  it('one that fails does not hide the others of another file, and those behind it are not tried', async () => {
    const other = `${packages}/v1/other.py`;
    imageHas({ [model]: 'x = 1\n', [other]: original });
    const further = patch(changed, changed.replace('END = 1', 'END = 2'));
    lay({ 'one.patch': patch(), 'two.patch': further, 'three.patch': patch(original, changed, other) });
    expect(await check(folder, [stack])).toBe(1);
    expect(said).toContain('two.patch: not tried: one.patch changes the same file before it');
    expect(said).toContain(`ok    three.patch: applies to ${other}`);
  });

  it('one that the image contains does not keep the next from being tried', async () => {
    imageHas({ [model]: changed });
    lay({ 'one.patch': patch(), 'two.patch': patch(changed, changed.replace('END = 1', 'END = 2')) });
    expect(await check(folder, [stack])).toBe(1);
    expect(said).toContain('FAULT one.patch: already contained');
    expect(said).toContain('ok    two.patch');
  });

  it('the wrong order is a fault that says which is the right one, without a host too', async () => {
    lay({ 'two.patch': patch(changed, changed.replace('END = 1', 'END = 2')), 'one.patch': patch() });
    host.answer = new SshFailure('unreachable', 'dank@192.0.2.7:22: not reachable');
    expect(await check(folder, [stack])).toBe(1);
    expect(said).toContain('put one.patch before two.patch');
  });

  it.each([
    [
      'changed since it was recorded',
      () => write('patches/one.patch', `Note: x\n${read('patches/one.patch')}`),
    ],
    ['must be recorded in patches/SHA256SUMS', () => write('patches/SHA256SUMS', '')],
    ['must be recorded in patches/SHA256SUMS', () => rmSync(join(folder, 'patches/SHA256SUMS'))],
    ['must be a unified diff', () => write('patches/one.patch', 'Change line 3.\n')],
    ['is recorded in patches/SHA256SUMS and not there', () => rmSync(join(folder, 'patches/one.patch'))],
    ['missing: put the diff into patches/', () => rmSync(join(folder, 'patches/one.patch'))],
  ])('%s: a fault where no host answers', async (text, damage) => {
    lay({ 'one.patch': patch() });
    damage();
    host.answer = new SshFailure('unreachable', 'dank@192.0.2.7:22: not reachable');
    expect(await check(folder, [])).toBe(1);
    expect(said).toContain(text);
  });

  it.each([
    ['does not answer', new SshFailure('unreachable', 'dank@192.0.2.7:22: not reachable'), 'not reachable'],
    ['is not set up', { exitCode: 93, stdout: '', stderr: '' }, 'pulumi up -s dankserver'],
    ['has an older program', { exitCode: 64, stdout: '', stderr: 'usage' }, 'another host program'],
    ['answers with something else', { exitCode: 0, stdout: '{"images":[{}]}', stderr: '' }, 'another form'],
    ['fails', { exitCode: 70, stdout: '', stderr: 'slot: no room' }, 'no room'],
    ['lacks the image', undefined, 'slot preflight glm-w4a16 pulls it'],
  ])('is no fault where the host %s, and that is said', async (_, answer, text) => {
    lay({ 'one.patch': patch() });
    host.answer = answer;
    if (answer === undefined) host.images = {};
    expect(await check(folder, [])).toBe(0);
    expect(said).toContain('open  one.patch: well-formed');
    expect(said).toContain('not checked to the end: 1, marked open');
    expect(said).toContain('glm-w4a16 was not checked against its image');
    expect(said).toContain(text);
  });

  it('names what the operator has not supplied yet, and asks no host for it', async () => {
    write('Pulumi.dankserver.yaml', operatorFile('dankserver'));
    lay({ 'one.patch': patch() });
    writeShape(['one.patch', 'two.patch']);
    expect(await check(folder, [])).toBe(0);
    expect(said).toContain('open  two.patch: not supplied yet');
    expect(said).toContain('slot:host.address');
    expect(host.requests).toEqual([]);
  });

  it('a shape that is wrong otherwise is a fault, and the others are checked', async () => {
    lay({ 'one.patch': patch() });
    write('Pulumi.broken.yaml', 'config:\n  slot:shape:\n    host: dankserver\n    patchs: []\n');
    expect(await check(folder, [])).toBe(1);
    expect(said).toContain('patchs');
    expect(said).toContain('ok    one.patch');
  });

  it('a stack that is not there is named with those that are', async () => {
    expect(await check(folder, ['glm-w4a1'])).toBe(1);
    expect(said).toContain('did you mean');
  });

  it('judges patches that no shape names by themselves', async () => {
    lay({ 'one.patch': patch() });
    writeShape([]);
    expect(await check(folder, [])).toBe(0);
    expect(said).toContain('one.patch: well-formed; no shape names it');
    write('patches/one.patch', 'prose\n');
    expect(await check(folder, [])).toBe(1);
  });
});

describe('slot patch new', () => {
  const place = '.slot/patches/fix-01';
  const begin = () => newPatch(folder, stack, model, 'fix-01');
  const edit = (text: string | Uint8Array, why = 'Why: it is wrong, measured 2026-11-29\n') => {
    write(`${place}/model.py`, text);
    write(`${place}/about.txt`, why);
  };
  const nothingWritten = () => expect(existsSync(join(folder, 'patches'))).toBe(false);

  it('takes plain text for why', async () => {
    await begin();
    edit(changed, 'Measured reserve of 2026-11-29.\n');
    expect(await begin()).toBe(0);
    expect(read('patches/fix-01.patch')).toContain('Measured reserve of 2026-11-29.\n');
  });

  it('lays out a copy, and the same command after the edit writes and records the patch', async () => {
    expect(await begin()).toBe(0);
    expect(read(`${place}/model.py`)).toBe(original);
    edit(
      changed,
      read(`${place}/about.txt`)
        .replace('Why: ', 'Why: measured')
        .replace('\nMarker: ', '\nMarker: END == 1'),
    );
    expect(await begin()).toBe(0);
    const text = read('patches/fix-01.patch');
    expect(text).toContain('Why: measured\nMarker: END == 1\n\n--- a/vllm/models/model.py\n');
    expect(text).toContain('@@ class A:');
    expect(read('patches/SHA256SUMS')).toBe(`${sha256(text)}  fix-01.patch\n`);
    expect(existsSync(join(folder, place))).toBe(false);
    expect(said).toContain("pulumi config set --path 'slot:shape.patches[0]' fix-01.patch -s glm-w4a16");
    writeShape(['fix-01.patch']);
    expect(await check(folder, [])).toBe(0);
    expect(said).toContain('ok    fix-01.patch: applies');
  });

  it('begins at the result of the patches before it in the list', async () => {
    lay({ 'one.patch': patch() });
    writeShape(['one.patch', 'fix-01.patch', 'gone.patch']);
    expect(await begin()).toBe(0);
    expect(read(`${place}/model.py`)).toBe(changed);
    edit(changed.replace('END = 1', 'END = 2'));
    expect(await begin()).toBe(0);
    expect(said).toContain('names it already');
    writeShape(['one.patch', 'fix-01.patch']);
    expect(await check(folder, [])).toBe(0);
  });

  it('does not begin behind a patch that does not apply, and says that one is missing', async () => {
    lay({ 'one.patch': patch() });
    writeShape(['gone.patch', 'one.patch']);
    imageHas({ [model]: 'x = 1\n' });
    expect(await begin()).toBe(1);
    expect(said).toContain('one.patch comes before and does not apply');
    expect(said).toContain('patches/gone.patch is not there');
    expect(existsSync(join(folder, place))).toBe(false);
  });

  it.each(['../x', 'a/b', '', '.', '..', '.hidden', 'a..b', 'x y', 'ä', '-x', 'x'.repeat(200), 'a\nb'])(
    'refuses the name %j',
    async (name) => {
      await expect(newPatch(folder, stack, model, name)).rejects.toThrow('cannot be the name of a patch');
      expect(host.requests).toEqual([]);
    },
  );

  it.each(['models/model.py', '/a/../b.py', '/a//b.py', '/a/b.so', '/a b.py', '', '/', '/a,b.py'])(
    'refuses the target %j',
    async (target) => {
      await expect(newPatch(folder, stack, target, 'x')).rejects.toThrow('absolute path of a Python file');
      expect(host.requests).toEqual([]);
    },
  );

  it.each([
    ['a folder, not a regular file', () => imageHas({ [model]: 'FOLDER' })],
    ['is not in the image', () => imageHas({})],
    ['absent on this host', () => imageHas(undefined)],
    ['not reachable', () => hostFails(new SshFailure('unreachable', 'not reachable'))],
  ])('does not begin where the host says: %s', async (text, damage) => {
    damage();
    expect(await begin()).toBe(1);
    expect(said).toContain(text);
    expect(existsSync(join(folder, '.slot'))).toBe(false);
  });

  it('does not begin for a shape whose image is not supplied, and says how to supply it', async () => {
    write(`Pulumi.${stack}.yaml`, operatorFile(stack));
    await expect(begin()).rejects.toThrow('engine.image.digest');
  });

  it.each([
    ['as the image has it: edit it first', original, undefined],
    ['no text', Uint8Array.of(120, 10, 255, 10), undefined],
    ['no text', 'x\0\n', undefined],
    ['in its line ends alone', original.replaceAll('\n', '\r\n'), undefined],
    [
      'other line ends than the image (CRLF instead of plain ones)',
      changed.replaceAll('\n', '\r\n'),
      undefined,
    ],
    ['no Python that compiles', changed.replace('return x + 2', 'return x +'), undefined],
    ['does not say why yet', changed, 'Why: \n# Why: x\n'],
    ['does not say why yet', changed, 'Marker: END == 1\n'],
    ['about.txt', changed, 'Why: x\nMarker: 1\nMarker: 2\n'],
  ])('writes nothing where the edit is %s', async (text, edited, why) => {
    await begin();
    edit(edited, why);
    expect(await begin()).toBe(1);
    expect(said).toContain(text);
    nothingWritten();
    expect(existsSync(join(folder, place))).toBe(true);
  });

  it("takes what the image's Python takes, though this machine's does not", async () => {
    await begin();
    edit(`${changed}match = !\n`);
    host.compiles = { kind: 'not asked', reason: 'no python3' };
    expect(await begin()).toBe(1);
    nothingWritten();
    host.compiles = { kind: 'compiles' };
    expect(await begin()).toBe(0);
  });

  it('writes nothing where the copy is gone', async () => {
    await begin();
    rmSync(join(folder, place, 'model.py'));
    expect(await begin()).toBe(1);
    nothingWritten();
  });

  it('never writes over a patch', async () => {
    await begin();
    edit(changed);
    lay({ 'fix-01.patch': patch() });
    await expect(begin()).rejects.toThrow('is there already');
    expect(read('patches/fix-01.patch')).toBe(patch().toString());
  });

  it('does not mix two patches of one name, nor two images', async () => {
    await begin();
    await expect(newPatch(folder, stack, `${packages}/other.py`, 'fix-01')).rejects.toThrow('for the target');
    writeShape([], { digest: newDigest });
    await expect(begin()).rejects.toThrow('for the image');
    write(`${place}/begun.json`, '{');
    await expect(begin()).rejects.toThrow('to begin anew');
  });

  it('waits for another call that writes, and leaves nothing of its own', async () => {
    await begin();
    edit(changed);
    write('patches/SHA256SUMS.new', '');
    expect(await begin()).toBe(1);
    expect(said).toContain('another slot patch writes');
    expect(readdirSync(join(folder, 'patches'))).toEqual(['SHA256SUMS.new']);
    rmSync(join(folder, 'patches/SHA256SUMS.new'));
    expect(await begin()).toBe(0);
  });

  it('leaves all as it was where the folder cannot be written', async () => {
    await begin();
    edit(changed);
    // Root may write where it is forbidden: a folder of the file's name stands in for the disk.
    mkdirSync(join(folder, 'patches/.fix-01.patch.new'), { recursive: true });
    expect(await begin()).toBe(1);
    expect(said).toContain('nothing was written');
    expect(readdirSync(join(folder, 'patches'))).toEqual(['.fix-01.patch.new']);
    expect(existsSync(join(folder, place))).toBe(true);
  });
});

describe('slot patch rebase', () => {
  const onNew = (write = false) => rebase(folder, stack, { digest: newDigest, write });
  const laid = () => read('patches/one.patch');

  beforeEach(() => lay({ 'one.patch': patch() }));

  it('leaves alone what applies as it is, and says how to pin the image', async () => {
    imageHas({ [model]: original }, newDigest);
    const text = laid();
    expect(await onNew(true)).toBe(0);
    expect(said).toContain('one.patch: applies as it is');
    expect(said).toContain(`slot:shape.engine.image.digest ${newDigest} -s glm-w4a16`);
    expect(laid()).toBe(text);
    expect(host.requests[0]?.images[0]).toMatchObject({ image: `${repository}@${newDigest}`, pull: true });
  });

  it('says where a patch stands in a changed file, writes it only when told, and says who else names it', async () => {
    const drifted = `# first\n# second\n${original.replace('END = 1', 'END = 7')}`;
    imageHas({ [model]: drifted.replace('END = 7', 'END = 1\nMORE = 1') }, newDigest);
    writeShape(['one.patch'], { name: 'other' });
    const text = laid();
    expect(await onNew()).toBe(1);
    expect(said).toContain('2 lines further down');
    expect(said).toContain('--write');
    expect(laid()).toBe(text);
    expect(await onNew(true)).toBe(0);
    expect(said).toContain('other names one.patch too and pins another image');
    expect(laid()).toContain('Why: a test');
    writeShape(['one.patch'], { digest: newDigest });
    expect(await check(folder, [stack])).toBe(0);
    expect(await rebase(folder, stack, { digest: undefined, write: false })).toBe(0);
    expect(said).toContain('ok    one.patch: applies');
  });

  it('carries a chain of patches on one file over', async () => {
    lay({ 'one.patch': patch(), 'two.patch': patch(changed, changed.replace('import os', 'import sys')) });
    imageHas({ [model]: original.replace('import os', 'import re\nimport os') }, newDigest);
    expect(await onNew()).toBe(1);
    expect(said).toMatch(/one.patch: applies to a changed file.*\n.*1 line further down/);
    expect(said).toMatch(/two.patch: applies to a changed file.*\n.*1 line further down/);
    imageHas({ [model]: original.replace('x + 1', 'x + 9').replace('import os', 'import re') }, newDigest);
    expect(await onNew(true)).toBe(1);
    expect(said).toContain('two.patch: not tried: one.patch changes the same file before it');
    imageHas({ [model]: `${original}# end\n` }, newDigest);
    expect(await onNew(true)).toBe(0);
    writeShape(['one.patch', 'two.patch'], { digest: newDigest });
    expect(await check(folder, [stack])).toBe(0);
  });

  it.each([
    ['already contained', { [model]: `# new\n${changed}` }],
    [
      'line 12 is "        z = x", the patch has "        y = x"',
      { [model]: original.replace(/y = x(?!.*y = x)/s, 'z = x') },
    ],
    ['hunk 1 stands nowhere: none of its lines is in the file', { [model]: 'x = 1\n' }],
    ['gone: ', {}],
    ['fits no file of its name: /x/model.py', { '/x/model.py': 'x = 1\n' }],
    ['fits /x/model.py and /y/model.py: say which', { '/x/model.py': original, '/y/model.py': original }],
    ['is a folder there', { [model]: 'FOLDER' }],
    ['has 2 places, line 10, 17', { [model]: original + original.slice(original.indexOf('class B')) }],
  ])('leaves to a person: %s', async (text, files) => {
    imageHas(files as unknown as Files, newDigest);
    const unchanged = laid();
    expect(await onNew(true)).toBe(1);
    expect(said).toContain(text);
    expect(laid()).toBe(unchanged);
  });

  it.each([
    ['is prose', () => write('patches/one.patch', 'prose\n')],
    ['is not there', () => rmSync(join(folder, 'patches/one.patch'))],
  ])('rewrites nothing behind a patch that %s: it may change the same file', async (_what, damage) => {
    lay({ 'one.patch': patch(), 'two.patch': patch(changed, changed.replace('END = 1', 'END = 2')) });
    damage();
    imageHas({ [model]: original }, newDigest);
    const two = read('patches/two.patch');
    expect(await onNew(true)).toBe(1);
    expect(said).toContain('two.patch: not tried: one.patch comes before it and cannot be read');
    expect(read('patches/two.patch')).toBe(two);
  });

  it('never accepts on the way what was changed since it was recorded', async () => {
    imageHas({ [model]: `# new\n${original}` }, newDigest);
    write('patches/one.patch', laid().replaceAll('return', 'renamed'));
    const renamed = laid();
    expect(await onNew(true)).toBe(1);
    expect(said).toContain('one.patch: not as patches/SHA256SUMS records it');
    expect(laid()).toBe(renamed);
  });

  it('follows a file that moved', async () => {
    const moved = `${packages}/models/common/model.py`;
    imageHas({ [moved]: original }, newDigest);
    expect(await onNew()).toBe(1);
    expect(said).toContain(`moved: ${model} is ${moved} there; it applies as it is`);
    expect(await onNew(true)).toBe(0);
    expect(laid()).toContain(`Target: ${moved}\n`);
    writeShape(['one.patch'], { digest: newDigest });
    expect(await check(folder, [stack])).toBe(0);
  });

  it.each(['sha256:1234', 'latest', `sha256:${'A'.repeat(64)}`, `${newDigest} `, 'a'.repeat(64)])(
    'refuses the digest %j',
    async (digest) => {
      await expect(rebase(folder, stack, { digest, write: true })).rejects.toThrow('a digest is sha256:');
      expect(host.requests).toEqual([]);
    },
  );

  it('has nothing to try where the shape names no patch, the host is silent, or the image is not to be had', async () => {
    expect(await onNew()).toBe(1);
    expect(said).toContain('absent on this host');
    host.answer = new SshFailure('lost', 'the command did not end');
    expect(await onNew()).toBe(1);
    expect(said).toContain('the command did not end');
    writeShape([]);
    await expect(onNew()).rejects.toThrow('names no patches');
  });
});

describe('a hunk', () => {
  const drift = (file: string) => {
    const read = parsePatchFile(patch());
    if (read.patch === undefined) throw new Error('no patch');
    return judge(Buffer.from(file), read.patch);
  };

  it('does not follow its lines into another class', () => {
    const body = '    def forward(self, x):\n        a = 1\n        b = 2\n        c = 3\n        return x\n';
    const base = `class A:\n${body}\n\nEND = 1\n`;
    const { patch: made } = parsePatchFile(patch(base, base.replace('return x', 'return x + 1')));
    const inOther = base.replace('class A:', 'class B:');
    expect(made && judge(Buffer.from(`# new\n${base}`), made)).toMatchObject({ kind: 'drifted' });
    expect(made && judge(Buffer.from(inOther), made)).toMatchObject({
      kind: 'conflicts',
      reasons: ['hunk 1 was made below "class A:", its lines stand at line 3 below "class B:"'],
    });
  });

  it('is not called contained where its lines are those of another class, or stand twice', () => {
    const twin = `class A:\n${method('x + 2')}`;
    const base = `${twin}\n\nclass B:\n${method('x + 1')}`;
    const lines =
      '     def forward(self, x):\n         y = x\n-        return x + 1\n+        return x + 2\n';
    const text = patch(base, base.replace('x + 1', 'x + 2')).toString();
    const { patch: made } = parsePatchFile(
      `${text.slice(0, text.indexOf('@@'))}@@ -8,3 +8,3 @@ class B:\n${lines}`,
    );
    expect(made && judge(Buffer.from(twin), made)).toMatchObject({ kind: 'conflicts' });
    expect(made && judge(Buffer.from(`# new\n${base.replace('x + 1', 'x + 2')}`), made)).toMatchObject({
      kind: 'conflicts',
      reasons: ['hunk 1 is in the file already (line 3, 9)'],
    });
  });

  it('is not applied where what it makes is in the file as well', () => {
    expect(drift(`${original}${changed.slice(changed.indexOf('class B'))}`)).toMatchObject({
      kind: 'conflicts',
      reasons: [expect.stringContaining('already')],
    });
  });
});

describe('record', () => {
  it('accepts what changed, and keeps the others', async () => {
    lay({ 'one.patch': patch(), 'two.patch': patch(changed, original) });
    write('patches/one.patch', `Note: by hand\n${read('patches/one.patch')}`);
    expect(await record(folder, ['patches/one.patch'])).toBe(0);
    expect(read('patches/SHA256SUMS')).toBe(
      `${sha256(read('patches/one.patch'))}  one.patch\n${sha256(patch(changed, original))}  two.patch\n`,
    );
    for (const name of ['one.patch', 'one', 'patches/one']) expect(await record(folder, [name])).toBe(0);
    expect(said).toContain('is recorded as it is');
    await expect(async () => record(folder, ['none'])).rejects.toThrow(
      'patches/none.patch: there is no such',
    );
  });

  it('does not take up what a killed call left, and loses no line of a damaged record', async () => {
    lay({ 'one.patch': patch() });
    write('patches/.one.patch.new', 'left by a killed rebase');
    write('patches/one.patch', `Note: by hand\n${read('patches/one.patch')}`);
    const text = read('patches/one.patch');
    expect(await record(folder, ['one.patch'])).toBe(0);
    expect(read('patches/one.patch')).toBe(text);
    write('patches/SHA256SUMS', `<<<<<<< HEAD\n${read('patches/SHA256SUMS')}`);
    const sums = read('patches/SHA256SUMS');
    await expect(record(folder, ['one.patch'])).rejects.toThrow('patches/SHA256SUMS: line 1');
    expect(read('patches/SHA256SUMS')).toBe(sums);
  });

  it('refuses prose, and a file that is not there', async () => {
    lay({ 'one.patch': patch() });
    write('patches/prose.patch', 'Change it.\n');
    const sums = read('patches/SHA256SUMS');
    expect(await record(folder, ['one.patch', 'prose.patch'])).toBe(1);
    await expect(record(folder, ['../Pulumi.dankserver.yaml'])).rejects.toThrow('there is no such file');
    expect(read('patches/SHA256SUMS')).toBe(sums);
  });
});

describe('a written patch', () => {
  const line = fc.constantFrom(
    ...['a', 'b', '', '  x', '-- ', '--- a', '+++ b', '@@ -1 +1 @@', 'class A:', 'def f():', 'ä', '1.0'],
    ...['\\ No newline at end of file', 'x\r', 'diff --git a b', 'Target: x'],
  );
  const file = fc
    .tuple(fc.array(line, { maxLength: 20 }), fc.constantFrom('', '\n'))
    .map(([lines, end]) => Buffer.from(lines.join('\n') + end));

  it('makes of its base the edited file, byte for byte', () => {
    fc.assert(
      fc.property(file, file, (base, patched) => {
        fc.pre(!base.equals(patched));
        const content = patchFileOf({ target: model, base, patched, notes: ['Why: x'] });
        const { patch: readPatch, faults } = parsePatchFile(content);
        expect(faults).toBeUndefined();
        const judgement = readPatch && judge(base, readPatch);
        expect(judgement).toMatchObject({ kind: 'applies' });
        expect(judgement?.kind === 'applies' && Buffer.from(judgement.bytes).equals(patched)).toBe(true);
        expect(notesOf(content)).toEqual(['Why: x']);
      }),
    );
  });

  it('brought to a file with lines before and after, makes the same change there', () => {
    fc.assert(
      fc.property(file, file, fc.nat(5), (base, patched, count) => {
        fc.pre(!base.equals(patched) && base.includes(10) && patched.includes(10));
        const { patch: readPatch } = parsePatchFile(patchFileOf({ target: model, base, patched, notes: [] }));
        const above = Buffer.from('# above\n'.repeat(count + 1));
        const judgement = readPatch && judge(Buffer.concat([above, base]), readPatch);
        if (judgement?.kind !== 'drifted') return;
        expect(Buffer.from(judgement.bytes)).toEqual(Buffer.concat([above, patched]));
      }),
    );
  });
});
