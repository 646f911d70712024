import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { hubFilesAt, hubFilesIn } from '../../../cli/hub-metadata.ts';
import { importSeal, seal, verify } from '../../../cli/payload.ts';
import { draftedShape } from '../../../components/planned-shape.ts';
import { laidOver } from '../../../lab/overlay.ts';
import { type RunResult, SshFailure } from '../../../remote/ssh.ts';
import { manifestText, type PayloadManifest } from '../../../shape/payload-manifest.ts';
import { payloadRequestSchema } from '../../../shape/payload-request.ts';
import { completedFile } from '../../fixtures/operator-files.ts';

const ssh = vi.hoisted(() => ({
  calls: [] as { command: string; input: string | undefined }[],
  answer: { exitCode: 0, stdout: '', stderr: '' } as RunResult | Error,
}));

vi.mock(import('../../../remote/ssh.ts'), async (importActual) => ({
  ...(await importActual()),
  runOnHost: async (_target, command, options) => {
    ssh.calls.push({ command, input: options?.input });
    if (ssh.answer instanceof Error) throw ssh.answer;
    return ssh.answer;
  },
}));

const glm = 'glm-w4a16';
const root = '/home/dank/models/GLM-5.3-Flash-W4A16-AutoRound';
const file = 'payloads/GLM-5.3-Flash-W4A16-AutoRound.sha256';
const manifest: PayloadManifest = [
  { name: 'config.json', size: 2, sha256: 'a'.repeat(64) },
  { name: 'model.safetensors', size: 5, sha256: 'b'.repeat(64) },
];

let folder: string;
let said: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slot-payload-cli-'));
  for (const stack of ['dankserver', glm])
    writeFileSync(join(folder, `Pulumi.${stack}.yaml`), completedFile(stack));
  ssh.calls.length = 0;
  ssh.answer = { exitCode: 0, stdout: JSON.stringify([{ root, manifest }]), stderr: '' };
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
  rmSync(folder, { recursive: true });
});

const put = (name: string, text: string) => {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), text);
};
const asked = () => payloadRequestSchema.parse(JSON.parse(ssh.calls.at(-1)?.input ?? ''));
const change = (...changes: Parameters<typeof laidOver>[1]) =>
  put(`Pulumi.${glm}.yaml`, laidOver(completedFile(glm), changes));
const shape = (...keys: string[]) => ['config', 'slot:shape', ...keys];

describe('seal', () => {
  it('has the host read the payload and writes what it answers', async () => {
    expect(await seal(folder, glm)).toBe(0);
    expect(ssh.calls[0]?.command).toBe('sudo -n /usr/local/libexec/slot/slot payload seal');
    expect(asked()).toMatchObject({ service: 'frank-archon', trees: [{ root }] });
    expect(readFileSync(join(folder, file), 'utf8')).toBe(manifestText(manifest));
    expect(said).toMatch(/payloads\/GLM-.*\.sha256: 2 files, manifest [0-9a-f]{12}\n/);
  });

  it('says so where nothing has changed', async () => {
    await seal(folder, glm);
    await seal(folder, glm);
    expect(said).toContain('.sha256 says so already: 2 files');
  });

  it('names the files of which it says otherwise than the last seal', async () => {
    const [first, ...others] = manifest;
    const gone = { name: 'gone.json', size: 2, sha256: 'f'.repeat(64) };
    put(file, manifestText([{ ...(first ?? gone), sha256: 'e'.repeat(64) }, gone]));
    await seal(folder, glm);
    expect(said).toContain(`other bytes than at the last seal: ${first?.name}\n`);
    expect(said).toContain('no more there: gone.json\n');
    for (const { name } of others) expect(said).toContain(`new: ${name}\n`);
  });

  it('tells the host what is on record, and seals what is mounted as well', async () => {
    change([
      shape('mounts'),
      [
        {
          source: 'GLM-5.3-Flash-DFlash2',
          target: '/draft',
          expected: { files: { 'model.safetensors': { sha256: 'b038e1d9' } } },
        },
      ],
    ]);
    await seal(folder, glm);
    expect(asked().trees[1]).toEqual({
      root: '/home/dank/models/GLM-5.3-Flash-DFlash2',
      expected: { files: { 'model.safetensors': { sha256: 'b038e1d9' } } },
    });
  });

  it('asks nothing of the operator that it does not need: an image is not known yet', async () => {
    change([shape('engine', 'image', 'digest'), undefined]);
    expect(await seal(folder, glm)).toBe(0);
  });

  it('asks for what it needs', async () => {
    put(
      'Pulumi.dankserver.yaml',
      laidOver(completedFile('dankserver'), [[['config', 'slot:host', 'address'], undefined]]),
    );
    await expect(seal(folder, glm)).rejects.toThrow('slot:host.address');
    expect(ssh.calls).toEqual([]);
  });

  it('writes nothing where the host refuses', async () => {
    ssh.answer = { exitCode: 10, stdout: '', stderr: '' };
    expect(await seal(folder, glm)).toBe(10);
    expect(said).toContain('nothing was written');
    expect(existsSync(join(folder, 'payloads'))).toBe(false);
  });

  it('refuses two folders of one name', async () => {
    change([shape('mounts'), [{ source: 'elsewhere/GLM-5.3-Flash-W4A16-AutoRound', target: '/draft' }]]);
    await expect(seal(folder, glm)).rejects.toThrow(`two folders of the shape would be sealed in ${file}`);
  });

  it('that loses its connection says that the host goes on', async () => {
    ssh.answer = new SshFailure('lost', 'dank@host: the command’s end is not known');
    await expect(seal(folder, glm)).rejects.toThrow(/the host goes on reading: the same command follows it/);
  });
});

describe('verify', () => {
  it('sends the manifest, and passes on how it ended', async () => {
    put(file, manifestText(manifest));
    ssh.answer = { exitCode: 10, stdout: '', stderr: '' };
    expect(await verify(folder, glm)).toBe(10);
    expect(asked().trees[0]).toMatchObject({ root, manifest });
  });

  it('without a manifest says how to get one', async () => {
    await expect(verify(folder, glm)).rejects.toThrow(`there is no ${file}: npx slot payload seal ${glm}`);
  });

  it.each([
    ['a size that is missing', `${'a'.repeat(64)}  config.json\n`, 'line 1: no line "# <size> bytes"'],
    ['a hash that is cut', `# 2 bytes\n${'a'.repeat(63)}  config.json\n`, 'line 2'],
    [
      'a way out of the folder',
      `# 2 bytes\n${'a'.repeat(64)}  ../config.json\n`,
      'line 2: must be a path below',
    ],
    ['a size without a file', '# 2 bytes\n# 3 bytes\n', 'line 2: a size without a file'],
    ['nothing', '', 'no file is named'],
  ])('names the line of a manifest with %s', async (_what, text, message) => {
    put(file, text);
    await expect(verify(folder, glm)).rejects.toThrow(message);
  });
});

describe('the release', () => {
  const manifestIn = () => draftedShape(folder, glm).release.payload.manifest;

  beforeEach(() => {
    rmSync(join(folder, 'models'), { recursive: true, force: true });
    change([shape('model'), undefined], [shape('payload', 'verify'), 'hashes']);
    put(file, manifestText(manifest));
  });

  it('that asks for hashes has the manifest, so another payload is another release', () => {
    expect(manifestIn()).toEqual(manifest);
  });

  it('has it from a file with the line ends of another system', () => {
    put(file, manifestText(manifest).replaceAll('\n', '\r\n'));
    expect(manifestIn()).toEqual(manifest);
  });

  it('that asks for an inventory is the same, sealed or not', () => {
    change([shape('model'), undefined]);
    expect(manifestIn()).toBeUndefined();
  });

  it('is not made of a damaged manifest', () => {
    appendFileSync(join(folder, file), 'x\n');
    expect(manifestIn).toThrow(/payloads\/GLM-.*: must be a manifest: line 6/);
  });
});

describe('what a hub says', () => {
  const [commit, gitBlob, sha256] = ['c'.repeat(40), 'd'.repeat(40), 'e'.repeat(64)];

  it('is read from the records of a download', () => {
    put('download/model.safetensors.metadata', `${commit}\n${sha256}\n1712656091.123\n`);
    put('download/sub/config.json.metadata', `${commit}\n${gitBlob}\n1712656091.123\n`);
    put('download/model.safetensors.lock', '');
    expect(hubFilesAt(join(folder, 'download'))).toEqual([
      { name: 'model.safetensors', sha256 },
      { name: 'sub/config.json', gitBlob },
    ]);
    expect(hubFilesAt(join(folder, 'download/model.safetensors.metadata'))).toEqual([
      { name: 'model.safetensors', sha256 },
    ]);
  });

  it('is read from the folder of the model itself, past links that lead nowhere or round', () => {
    const records = 'model/.cache/huggingface/download';
    put(`${records}/model.safetensors.metadata`, `${commit}\n${sha256}\n1712656091.123\n`);
    put(`${records}/config.json.metadata`, `${commit}\n${gitBlob}\n1712656091.123\n`);
    symlinkSync('nowhere', join(folder, 'model/gone'));
    symlinkSync('round', join(folder, 'model/round'));
    expect(hubFilesAt(join(folder, 'model'))).toEqual([
      { name: 'config.json', gitBlob },
      { name: 'model.safetensors', sha256 },
    ]);
  });

  it('is read from the pointers of a clone without its content', () => {
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${sha256}\nsize 2342169800\n`;
    put('clone/model.safetensors', pointer);
    put('clone/config.json', '{}');
    put('clone/.git/lfs', pointer);
    const expected = [{ name: 'model.safetensors', sha256, size: 2342169800 }];
    expect(hubFilesAt(join(folder, 'clone'))).toEqual(expected);
    expect(hubFilesIn('model.safetensors', pointer.replaceAll('\n', '\r\n'))).toEqual(expected);
  });

  it('is read from the answers of its API', () => {
    const tree = [
      { type: 'directory', path: 'sub', oid: gitBlob, size: 0 },
      { type: 'file', path: 'config.json', oid: gitBlob, size: 2 },
      { type: 'file', path: 'sub/model.safetensors', oid: gitBlob, size: 9, lfs: { oid: sha256, size: 9 } },
    ];
    const siblings = [
      { rfilename: 'model.gguf', blobId: gitBlob, size: 9, lfs: { sha256, size: 9, pointerSize: 135 } },
    ];
    expect(hubFilesIn('tree.json', JSON.stringify(tree))).toEqual([
      { name: 'config.json', gitBlob, size: 2 },
      { name: 'sub/model.safetensors', sha256, size: 9 },
    ]);
    expect(hubFilesIn('model.json', JSON.stringify({ id: 'x', siblings }))).toEqual([
      { name: 'model.gguf', sha256, size: 9 },
    ]);
  });

  it('is read from lines of sha256sum and of git lfs ls-files --long', () => {
    for (const line of [`${sha256}  ./a b`, `${sha256} *a b`, `${sha256} - a b`, `${sha256} * a b`])
      expect(hubFilesIn('SUMS', `# made by hand\n${line}\n`)).toEqual([{ name: 'a b', sha256 }]);
  });

  it.each([
    ['nothing', ''],
    ['a web page', '<!doctype html>'],
    ['a pointer without its hash', 'version https://git-lfs.github.com/spec/v1\nsize 5\n'],
    ['hashes among other lines', `${'e'.repeat(64)}  a\nand more\n`],
    ['another JSON', '{"siblings": 3}'],
    ['JSON that is cut', '[{"path": "a"'],
  ])('is not made up from %s', (_what, text) => {
    put('record', text);
    expect(() => hubFilesAt(join(folder, 'record'))).toThrow(/record is none of: the records of a download/);
  });

  it('twice of one file is refused', () => {
    put('SUMS', `${sha256}  a\n${'f'.repeat(64)}  a\n`);
    expect(() => hubFilesAt(join(folder, 'SUMS'))).toThrow('speaks of a twice');
  });

  it('goes to the host with the seal of the payload, and not of what is mounted', async () => {
    change([shape('mounts'), [{ source: 'draft', target: '/draft' }]]);
    put('SUMS', `${sha256}  model.safetensors\n`);
    expect(await importSeal(folder, glm, join(folder, 'SUMS'))).toBe(0);
    expect(asked().trees).toMatchObject([{ root, hub: [{ name: 'model.safetensors', sha256 }] }]);
    expect(readdirSync(join(folder, 'payloads'))).toEqual(['GLM-5.3-Flash-W4A16-AutoRound.sha256']);
  });

  it('that is not there is named', async () => {
    await expect(importSeal(folder, glm, join(folder, 'absent'))).rejects.toThrow('absent is not there');
    expect(ssh.calls).toEqual([]);
  });
});
