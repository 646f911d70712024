import { randomBytes } from 'node:crypto';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { safetensorsFile } from '../../lab/payload/safetensors.ts';
import { openStage, type Stage } from '../../lab/stage.ts';
import type { HostView } from './host-view.ts';
import { deadlineKey, environmentKey, glm, qwen, r9v, Scene } from './scene.ts';

/*
 * A life of a host, each test going on where the one before it ended, while the kernel tells of every write to payloads
 * and state directories. What the life must not do is asked at its end.
 */
let stage: Stage;
let scene: Scene;
let host: HostView;
let before: string;

const models = '/home/dank/models';
const states = '/home/dank/r9v-state';
const sealed = 'GLM-sealed';
const payloadKey = ['config', 'slot:shape', 'payload'];
const asksForHashes = [payloadKey, { folder: sealed, quantization: 'auto-round', verify: 'hashes' }] as const;

/** Names, kinds, sizes, modes, owners, inodes, links and times, the one that nobody can set back among them. */
const tree = (folder: string) =>
  host.root(`find ${folder} -printf '%y %p %s %m %u %i %n %l %T@ %C@\\n' | LC_ALL=C sort`);

/** Events of the kernel since the host was set up, a line each. */
const events = async () => (await host.root('cat /run/watched')).split('\n').filter((line) => line !== '');

const slot = (...words: string[]) =>
  execa(process.execPath, ['cli/main.ts', ...words, '--folder', stage.workplace.folder], {
    reject: false,
    all: true,
    stdin: 'ignore',
  });

beforeAll(async () => {
  stage = await openStage({ kind: 'nspawn', progress: console.log });
  scene = new Scene(stage);
  host = scene.host;
  const { beginning, fileBytes } = safetensorsFile({ 'lm_head.weight': ['U8', 4096, 1024] });
  const weights = Buffer.concat([beginning, randomBytes(fileBytes - beginning.length)]);
  const made = await stage.lab.ssh(
    `sh -euc 'cd ${models}; mkdir ${sealed}; cd GLM-5.3-Flash-W4A16-AutoRound; cp config.json tokenizer.json chat_template.jinja ../${sealed}; cd ../${sealed}; base64 -d >model.safetensors; chown -R dank:dank .'`,
    { root: true, input: weights.toString('base64') },
  );
  expect(made.exitCode, made.stderr).toBe(0);
  await scene.lay(glm, [asksForHashes]);
  before = await tree(models);
});

afterAll(() => stage?.close());

describe('a life', () => {
  it('begins with a host that is set up', async () => {
    await scene.up('dankserver');
    const watch = `
      const { watch, appendFileSync, readdirSync } = require('node:fs');
      for (const root of ['${models}', '${states}']) {
        const folders = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isDirectory());
        for (const folder of [root, ...folders.map((entry) => entry.parentPath + '/' + entry.name)])
          watch(folder, (event, name) => appendFileSync('/run/watched', event + ' ' + folder + '/' + name + '\\n'));
      }
      appendFileSync('/run/watched', '');`;
    const unit = 'systemd-run --quiet --collect --unit=watching';
    await host.root(
      `${unit} sh -c 'exec /usr/local/libexec/slot/node-* --eval "$(echo ${Buffer.from(watch).toString('base64')} | base64 -d)"'`,
    );
    await host.until('watching', 10, async () => (await host.root('ls /run/watched')) !== '');
  });

  it('serves qwen', async () => {
    await scene.up(qwen);
    await scene.serves(qwen);
  });

  it('seals and verifies what it will serve, while qwen serves', async () => {
    await scene.withoutRestart(async () => {
      const sealing = await slot('payload', 'seal', glm);
      expect(sealing.exitCode, sealing.all).toBe(0);
      expect(sealing.stdout).toMatch(/^payloads\/GLM-sealed\.sha256: \d+ files, manifest [0-9a-f]{12}$/m);
      const again = await slot('payload', 'verify', glm);
      expect(again.exitCode, again.all).toBe(0);
      expect(again.all).toContain('hashes as sealed');
      expect(again.all).not.toContain('to read');
    });
  });

  it('cuts over to the sealed shape, whose mounts nobody in the container can write to', async () => {
    const output = await scene.up(glm);
    expect(output).toContain('payload hashes');
    await scene.serves(glm);
    const mounts = await host.root(
      `podman inspect --format '{{range .Mounts}}{{.Destination}} {{.RW}}{{"\\n"}}{{end}}' frank-archon-glm`,
    );
    expect(mounts.split('\n')).toContain('/model false');
    const write = `podman exec --user=root frank-archon-glm python3 -c 'open("/model/written", "w")'`;
    await expect(host.root(write)).rejects.toThrow(/Read-only file system/);
  });

  it('comes back from a cutover that fails', async () => {
    await scene.lay(qwen, [
      [environmentKey('LAB_ENGINE_FAULT'), 'exit-at-load'],
      [deadlineKey('boot'), '8 s'],
    ]);
    expect(await scene.failingUp(qwen)).toContain(`${glm} serves again and is proved`);
    await scene.serves(glm);
  });

  it('serves an engine that has state, and goes back on the host alone', async () => {
    await scene.up(r9v);
    await scene.serves(r9v);
    await host.root('slot rollback');
    await scene.serves(glm);
  });

  it('ends with the shape taken away', async () => {
    const { exitCode, output } = await stage.workplace.destroy(glm);
    expect(exitCode, output).toBe(0);
    expect(await host.servedNames()).toEqual([]);
  });
});

describe('after it', () => {
  it('the payloads are to the inode and the nanosecond what they were', async () => {
    expect(await tree(models)).toBe(before);
  });

  it('nobody wrote to a payload meanwhile, and to a state directory the engine alone', async () => {
    const touched = new Set((await events()).map((line) => line.split(' ')[1]));
    expect([...touched]).toEqual([`${states}/q8xl/starts.log`]);
    expect(await host.root(`cat ${states}/q8xl/state`)).toBe('kept');
  });

  it('a write would have been seen', async () => {
    await host.root(`touch ${models}/${sealed}/config.json`);
    await host.until('the event', 5, async () =>
      (await events()).some((line) => line.endsWith(`${sealed}/config.json`)),
    );
  });
});

describe('a payload that was changed behind the back of its seal', () => {
  it('is refused by name before anything is started, though size and time are those of before', async () => {
    const file = `${models}/${sealed}/model.safetensors`;
    await host.root(
      `sh -c 'touch -r ${file} /run/then && printf X | dd of=${file} bs=1 seek=5000 conv=notrunc status=none && touch -r /run/then ${file}'`,
    );
    const output = await scene.failingUp(glm);
    expect(output).toMatch(/model\.safetensors has sha256 [0-9a-f]{64}, expected [0-9a-f]{64}/);
    expect(await host.containers()).toEqual([]);
    const verified = await slot('payload', 'verify', glm);
    expect(verified.exitCode).toBe(10);
    expect(verified.all).toContain('model.safetensors has sha256');
  });
});
