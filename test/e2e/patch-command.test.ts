import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildEngineImage, SITE_PACKAGES } from '../../lab/engine/image.ts';
import { pushImage } from '../../lab/registry.ts';
import { openStage, type Stage } from '../../lab/stage.ts';
import { glm, Scene } from './scene.ts';

/* A patch's life beside a real host: made from the image's file, checked, brought to an image of another digest. */
const project = join(import.meta.dirname, '../..');
const server = join(project, 'lab/engine/server');
const patchesKey = ['config', 'slot:shape', 'patches'];
const digestKey = ['config', 'slot:shape', 'engine', 'image', 'digest'];

/** A patch each: file, what is replaced, by what. */
const edits = {
  drifts: ['vllm/models/glm5next/common/model.py', 'EXPERTS_PER_LAYER = 288', 'EXPERTS_PER_LAYER = 289'],
  contained: ['vllm/v1/core/kv_cache_utils.py', 'MARKER = "image"', 'MARKER = "patched"'],
  moves: ['vllm/models/glm5next/common/attention.py', 'INDEXER_HEADS = 64', 'INDEXER_HEADS = 65'],
  conflicts: ['vllm/compilation/wrapper.py', 'MARKER = "image"', 'MARKER = "patched"'],
  gone: ['vllm/v1/worker/gpu_worker.py', 'MARKER = "image"', 'MARKER = "patched"'],
} as const;
const names = Object.keys(edits) as (keyof typeof edits)[];

let stage: Stage;
let scene: Scene;

beforeAll(async () => {
  stage = await openStage({ kind: 'nspawn', progress: console.log });
  scene = new Scene(stage);
  await scene.up('dankserver');
});

afterAll(() => stage?.close());

async function slot(...words: string[]): Promise<{ exitCode: number | undefined; output: string }> {
  const { exitCode, all } = await execa(
    process.execPath,
    ['cli/main.ts', 'patch', ...words, '--folder', stage.workplace.folder],
    { reject: false, all: true, cwd: project },
  );
  return { exitCode, output: all };
}

const inWorkplace = (path: string) => join(stage.workplace.folder, path);
const sourceOf = (path: string) => readFile(join(server, path), 'utf8');
const pinned = (patches: readonly string[], digest = stage.images.vllm) =>
  scene.lay(glm, [
    [patchesKey, patches.map((name) => `${name}.patch`)],
    [digestKey, digest],
  ]);

it('an image that is not on the host is not pulled for a new patch, and nothing is laid out', async () => {
  const { exitCode, output } = await slot('new', glm, `${SITE_PACKAGES}/vllm/__init__.py`, 'early');
  expect(exitCode).toBe(1);
  expect(output).toContain('absent on this host');
  expect(await readdir(stage.workplace.folder)).not.toContain('.slot');
});

it('patches are made of the files of the image, and apply to them', async () => {
  await scene.host.root(`podman pull --quiet ${stage.images.repository}@${stage.images.vllm}`);
  for (const name of names) {
    const [path, from, to] = edits[name];
    const target = `${SITE_PACKAGES}/${path}`;
    const begun = await slot('new', glm, target, name);
    expect(begun.exitCode, begun.output).toBe(0);
    const place = inWorkplace(`.slot/patches/${name}`);
    const copy = join(place, path.split('/').at(-1) ?? '');
    const text = await readFile(copy, 'utf8');
    expect(text).toBe(await sourceOf(path));
    await writeFile(join(place, 'about.txt'), 'Why: seen on a lab\n');
    await writeFile(copy, text.replace(from, to));
    const made = await slot('new', glm, target, name);
    expect(made.exitCode, made.output).toBe(0);
  }
  await pinned(names);
  const { exitCode, output } = await slot('check');
  expect(exitCode, output).toBe(0);
  expect(output.match(/ok {4}\w+\.patch: applies to/g)).toHaveLength(names.length);
});

it('an edit that neither Python here nor that of the image takes is not written', async () => {
  const target = `${SITE_PACKAGES}/vllm/expert_activation_registry.py`;
  await slot('new', glm, target, 'broken');
  const place = inWorkplace('.slot/patches/broken');
  await writeFile(join(place, 'expert_activation_registry.py'), 'def broken(:\n');
  await writeFile(join(place, 'about.txt'), 'Why: seen on a lab\n');
  const { exitCode, output } = await slot('new', glm, target, 'broken');
  expect(exitCode).toBe(1);
  expect(output).toMatch(/no Python that compiles: .* of the image/);
  expect(await readdir(inWorkplace('patches'))).not.toContain('broken.patch');
});

it('what is no regular file of the image is told as what it is', async () => {
  const { exitCode, output } = await slot('new', glm, `${SITE_PACKAGES}/vllm/models/none.py`, 'none');
  expect(exitCode).toBe(1);
  expect(output).toContain('is not in the image');
});

it('each patch is tried on an image of another digest, which the host pulls, and brought to it on demand', async () => {
  const files = {
    [edits.drifts[0]]: `# first\n${await sourceOf(edits.drifts[0])}`,
    [edits.contained[0]]: (await sourceOf(edits.contained[0])).replace('"image"', '"patched"'),
    [edits.moves[0]]: null,
    'vllm/models/glm5next/attention.py': await sourceOf(edits.moves[0]),
    [edits.conflicts[0]]: 'MARKER = "rewritten"\n',
    [edits.gone[0]]: null,
  };
  const { reference } = await buildEngineImage({ files, progress: console.log });
  const digest = await pushImage(reference, 'tcclaviger/vllm:next');
  const before = await readFile(inWorkplace('patches/SHA256SUMS'), 'utf8');

  const tried = await slot('rebase', glm, digest);
  expect(tried.exitCode, tried.output).toBe(1);
  expect(tried.output).toContain('pulled in');
  expect(tried.output).toMatch(/drifts\.patch: applies to a changed file.*\n.*1 line further down/);
  expect(tried.output).toMatch(/contained\.patch: already contained/);
  expect(tried.output).toMatch(/moves\.patch: moved: .*glm5next\/attention\.py there; it applies as it is/);
  expect(tried.output).toMatch(/conflicts\.patch: conflicts: hunk 1/);
  expect(tried.output).toMatch(/gone\.patch: gone: /);
  expect(await readFile(inWorkplace('patches/SHA256SUMS'), 'utf8')).toBe(before);

  const written = await slot('rebase', glm, digest, '--write');
  expect(written.exitCode, written.output).toBe(1);
  await pinned(['drifts', 'moves'], digest);
  const { exitCode, output } = await slot('check', glm);
  expect(exitCode, output).toBe(0);
  expect(output.match(/ok {4}\w+\.patch: applies to/g)).toHaveLength(2);
  const sums = await execa('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], {
    cwd: inWorkplace('patches'),
  });
  expect(sums.exitCode).toBe(0);
  await pinned(['contained', 'conflicts', 'gone'], digest);
  const left = await slot('check', glm);
  expect(left.exitCode).toBe(1);
  expect(left.output).toContain('already contained');
  expect(left.output).toContain('wrong base');
  expect(left.output).toContain('is not in the image');
});

it('an image that no registry has is told, and nothing was left on the host', async () => {
  const { exitCode, output } = await slot('rebase', glm, `sha256:${'e'.repeat(64)}`);
  expect(exitCode).toBe(1);
  expect(output).toContain('cannot be pulled');
  expect(await scene.host.containers()).toEqual([]);
  expect(await scene.host.root('podman image mount')).toBe('');
});

it('a host that does not answer is no fault of a patch', async () => {
  await pinned(['drifts']);
  await stage.workplace.lay('dankserver', [[['config', 'slot:host', 'sshPort'], 9]]);
  const { exitCode, output } = await slot('check');
  expect(exitCode, output).toBe(0);
  expect(output).toContain('was not checked against its image');
});
