import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { plannedShape } from '../../components/planned-shape.ts';
import { buildEngineImage, type EngineImageOptions, SITE_PACKAGES } from '../../lab/engine/image.ts';
import { pushImage } from '../../lab/registry.ts';
import { openStage, type Stage } from '../../lab/stage.ts';
import { exitCodes, inspectionSchema } from '../../shape/inspection.ts';
import { namesOf } from '../../shape/names.ts';
import { patchHashesFile, patchHashesText } from '../../shape/patches.ts';
import { claimOf, manifestVersion, type Release, releaseIdOf, sha256 } from '../../shape/release.ts';
import { patchText } from '../fixtures/patches.ts';
import type { HostView } from './host-view.ts';
import { environmentKey, glm, qwen, Scene } from './scene.ts';

const project = join(import.meta.dirname, '../..');
const kvCache = 'vllm/v1/core/kv_cache_utils.py';
const registry = 'vllm/expert_activation_registry.py';
const worker = 'vllm/v1/worker/gpu_worker.py';
const model = 'vllm/models/glm5next/common/model.py';

let stage: Stage;
let scene: Scene;
let host: HostView;
/** Digests of images that differ from the lab's own. */
let unchecked: string;
let drifted: string;

const original = (file: string) => readFile(join(project, 'lab/engine/server', file), 'utf8');
const marked = (text: string, marker: string) => text.replace('MARKER = "image"', `MARKER = "${marker}"`);

/** A patch of an image's file, which a marker shows in effect unless it is told otherwise. */
async function patch(
  file: string,
  change: (text: string) => string,
  lines: readonly string[] = [],
  folder: string = SITE_PACKAGES,
): Promise<string> {
  const before = await original(file);
  return patchText({ target: `${folder}/${file}`, before, after: change(before), lines });
}

const markedPatch = (file: string, marker: string, ...lines: string[]) =>
  patch(file, (text) => marked(text, marker), lines);

/** The release of glm with these patches, planned from files as an operator has them. */
async function release(
  texts: Readonly<Record<string, string>>,
  { digest, environment = {} }: { digest?: string; environment?: Record<string, string> } = {},
): Promise<Release> {
  const { folder } = stage.workplace;
  const patches = join(folder, 'patches');
  await rm(patches, { recursive: true, force: true });
  await mkdir(patches);
  for (const [name, text] of Object.entries(texts)) await writeFile(join(patches, name), text);
  const hashes = Object.entries(texts).map(([name, text]) => [name, sha256(text)] as const);
  await writeFile(join(patches, patchHashesFile), patchHashesText(new Map(hashes)));
  await scene.lay(glm, [
    [['config', 'slot:shape', 'patches'], Object.keys(texts)],
    ...(digest === undefined
      ? []
      : [[['config', 'slot:shape', 'engine', 'image', 'digest'], digest] as const]),
    ...Object.entries(environment).map(([name, value]) => [environmentKey(name), value] as const),
  ]);
  return plannedShape(folder, glm).release;
}

async function cutover(wanted: Release): Promise<{ exitCode: number; output: string }> {
  const { epoch, occupant } = await host.status();
  const claim = claimOf({ epoch, occupant: occupant?.shape }, wanted);
  const input = JSON.stringify({ version: manifestVersion, claim, release: wanted });
  const { exitCode, stdout, stderr } = await stage.lab.ssh('slot cutover', { root: true, input });
  return { exitCode, output: `${stdout}${stderr}` };
}

/** What the cutover says, which must have left the engine alone. */
async function refusal(wanted: Release): Promise<string> {
  let output = '';
  await scene.withoutRestart(async () => {
    const outcome = await cutover(wanted);
    expect(outcome.exitCode, outcome.output).toBe(exitCodes.refused);
    output = outcome.output;
  });
  return output;
}

async function image(tag: string, options: EngineImageOptions): Promise<string> {
  const { reference } = await buildEngineImage(options);
  return pushImage(reference, `tcclaviger/vllm:${tag}`);
}

const patchedPath = ({ service, patches }: Release) => {
  const [first] = patches;
  if (first === undefined) throw new Error('no patch');
  return namesOf(service).patchedFile(first.patchedSha256, first.target);
};

beforeAll(async () => {
  unchecked = await image('unchecked', { byteCode: 'unchecked-hash' });
  const contained = marked(await original(registry), 'fixed');
  drifted = await image('drifted', {
    files: {
      [kvCache]: (await original(kvCache)).replace('"""How much memory', '"""How much of the memory'),
      [registry]: contained,
      [worker]: null,
      'vllm/v1/worker/gpu/gpu_worker.py': await original(worker),
      [`../../python3.12/dist-packages/${model}`]: await original(model),
    },
  });
  stage = await openStage({ kind: 'nspawn', name: 'patches', progress: console.log });
  scene = new Scene(stage);
  host = scene.host;
  await cp(join(project, 'images'), join(stage.workplace.folder, 'images'), { recursive: true });
  await scene.up('dankserver');
  const first = await cutover(plannedShape(stage.workplace.folder, qwen).release);
  expect(first.exitCode, first.output).toBe(exitCodes.serving);
});

afterAll(() => stage?.close());

describe('patches that are what they claim to be', () => {
  it('serve and are in effect, two of one file in their order', async () => {
    const first = await original(kvCache);
    const second = marked(first, 'second');
    const dollars = '$HOME $$ 100%';
    const wanted = await release(
      {
        'kv-1.patch': await markedPatch(kvCache, 'second'),
        'kv-2.patch': patchText({
          target: `${SITE_PACKAGES}/${kvCache}`,
          before: second,
          after: second.replace('BYTES_PER_TOKEN = 13_600', 'BYTES_PER_TOKEN = 13_700'),
          lines: ['Marker: BYTES_PER_TOKEN == 13_700 and MARKER == "second"'],
        }),
        'registry.patch': await markedPatch(
          registry,
          'other',
          `Marker: MARKER == "other" and __import__("os").environ["DOLLARS"] == "${dollars}"`,
        ),
      },
      { environment: { DOLLARS: dollars } },
    );
    const { exitCode, output } = await cutover(wanted);
    expect(exitCode, output).toBe(exitCodes.serving);
    expect(output).toContain('takes the code of every patched file and imports them');
    expect(output).toContain('the patches are in effect in the running container');
    const modules = await (await fetch(`${stage.lab.engineUrl}/lab/modules`)).json();
    expect(modules).toMatchObject({
      'vllm.v1.core.kv_cache_utils': { marker: 'second' },
      'vllm.expert_activation_registry': { marker: 'other' },
      'vllm.v1.worker.gpu_worker': { marker: 'image' },
    });
    expect((await host.status()).occupant).toMatchObject({ state: 'serving', faults: [] });
  });

  it('are missed when a mounted file was replaced on the host', async () => {
    const path = patchedPath(await release({ '1.patch': await markedPatch(registry, 'other') }));
    await host.root(`cp ${path} ${path}.new && mv ${path}.new ${path}`);
    const { occupant } = await host.status();
    expect(JSON.stringify(occupant)).toContain('replaced after the engine');
  });
});

describe('a patch is refused before anything is stopped', () => {
  it('when its hunk would need fuzz, with the lines that differ', async () => {
    const text = await patch(model, (before) =>
      before.replace('        hidden = self.normalize(hidden)\n        return self', '        return self'),
    );
    const stray = text.replace(
      '     def forward(self, hidden, positions):',
      '     def backward(self, hidden, positions):',
    );
    const output = await refusal(await release({ 'stray.patch': stray }));
    expect(output).toMatch(/preflight: patches.*stray\.patch/s);
    expect(output).toMatch(/hunk 1 .*is .*def forward.*the patch has .*def backward/);
  });

  it('when another digest has another file, has the change already, or has it elsewhere', async () => {
    const wanted = await release(
      {
        'differs.patch': await markedPatch(kvCache, 'patch'),
        'contained.patch': await markedPatch(registry, 'fixed'),
        'moved.patch': await markedPatch(worker, 'patch'),
      },
      { digest: drifted },
    );
    // Known to a preview already.
    await stage.lab.ssh(`podman pull --quiet ${wanted.image}`, { root: true });
    const input = JSON.stringify({ service: wanted.service, release: wanted });
    const { stdout } = await stage.lab.ssh('slot inspect', { root: true, input });
    const { findings } = inspectionSchema.parse(JSON.parse(stdout));
    const refusals = findings.filter(({ severity }) => severity === 'refuse');
    expect(refusals.map(({ subject }) => subject)).toEqual(['patches', 'patches', 'patches']);
    const output = await refusal(wanted);
    expect(output).toMatch(/differs\.patch: .* in the image has sha256 .*hunk 1 .*How much of the memory/);
    expect(output).toMatch(/contained\.patch is already contained/);
    expect(output).toMatch(/moved\.patch: .*moved to \S+\/vllm\/v1\/worker\/gpu\/gpu_worker\.py/);
  });

  it('and what a killed preview left mounted of an image is let go of by the next', async () => {
    const wanted = await release({ '1.patch': await markedPatch(model, 'killed') });
    const mounts = () => host.root('podman image mount');
    const notes = '/run/slot-image-mounts';
    // No process has such a number.
    await host.root(`podman image mount ${wanted.image} && printf %s ${wanted.image} >${notes}/4194305`);
    expect(await mounts()).not.toBe('');
    const input = JSON.stringify({ service: wanted.service, release: wanted });
    const { exitCode, stderr } = await stage.lab.ssh('slot inspect', { root: true, input });
    expect(exitCode, stderr).toBe(0);
    expect(await mounts()).toBe('');
    expect(await host.root(`ls ${notes}`)).toBe('');
  });

  it('when the file belongs to another Python of the image', async () => {
    const folder = SITE_PACKAGES.replace('3.13', '3.12');
    const text = await patch(model, (before) => marked(before, 'patch'), [], folder);
    const output = await refusal(await release({ '1.patch': text }, { digest: drifted }));
    expect(output).toMatch(
      /preflight: imports.*mounted and not used.*Python 3\.13.*imports this module from/s,
    );
  });

  it('when byte code of the same size and time lies beside it', async () => {
    const wanted = await release({ '1.patch': await markedPatch(worker, 'patch') });
    const { exitCode, stderr } = await stage.lab.ssh('slot preflight', {
      root: true,
      input: JSON.stringify(wanted),
    });
    expect(exitCode, stderr).toBe(0);
    await host.root(`touch -d @0 ${patchedPath(wanted)}`);
    const output = await refusal(wanted);
    expect(output).toMatch(
      /preflight: imports.*mounted and not used.*old byte code .*gpu_worker\.cpython-313\.pyc/s,
    );
  });

  it('when the byte code of the image is unchecked, unless Python is kept from it', async () => {
    const texts = { '1.patch': await markedPatch(model, 'other') };
    const output = await refusal(await release(texts, { digest: unchecked }));
    expect(output).toMatch(/preflight: imports.*unchecked byte code.*PYTHONPYCACHEPREFIX/s);
    const wanted = await release(texts, {
      digest: unchecked,
      environment: { PYTHONPYCACHEPREFIX: '/tmp/pycache' },
    });
    const { exitCode, stderr } = await stage.lab.ssh('slot preflight', {
      root: true,
      input: JSON.stringify(wanted),
    });
    expect(exitCode, stderr).toBe(0);
  });

  it('when it cannot be imported in this image, or its marker proves nothing', async () => {
    const broken = await patch(model, (text) =>
      text.replace('\nMOE_LAYERS', '\nfrom vllm.v1 import absent_name\n\nMOE_LAYERS'),
    );
    expect(await refusal(await release({ '1.patch': broken }))).toMatch(
      /cannot be imported with its patches: ImportError/,
    );
    const vague = await markedPatch(model, 'other', 'Marker: MOE_LAYERS == 42');
    expect(await refusal(await release({ '1.patch': vague }))).toMatch(/holds without the patch too/);
  });

  it('when the file that it made on this host was damaged since', async () => {
    const wanted = await release({ '1.patch': await markedPatch(worker, 'patch') });
    await host.root(`echo damage >>${patchedPath(wanted)}`);
    expect(await refusal(wanted)).toMatch(/preflight: patches.*damaged or changed on this host/s);
    await host.root(`rm ${patchedPath(wanted)}`);
  });
});

describe('a patch that is not in effect after the start', () => {
  it('is a failure, and the engine before it serves again', async () => {
    const wanted = await release(
      { '1.patch': await markedPatch(worker, 'patch') },
      { environment: { LAB_ENGINE_LOAD_SECONDS: '1' } },
    );
    const path = patchedPath(wanted);
    const results = `${namesOf(wanted.service).stateFolder}/preflight/${releaseIdOf(wanted)}*`;
    // The byte code of the image becomes the file's own in between.
    const [{ exitCode, output }] = await Promise.all([
      cutover(wanted),
      host.root(`until grep -qs imports ${results}; do sleep 0.05; done; touch -d @0 ${path}`),
    ]);
    expect(exitCode, output).toBe(exitCodes.restored);
    expect(output).toContain('prove: patches in effect');
    expect((await host.status()).occupant).toMatchObject({ state: 'serving' });
  });
});
