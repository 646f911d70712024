import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openStage, type Stage } from '../../lab/stage.ts';
import { qwen, Scene } from './scene.ts';

/* A secret reaches the engine and nothing else: everything that is printed or stored is searched for it. */
const canary = 'canary-7f3a91c2-sings';

let stage: Stage;
let scene: Scene;

beforeAll(async () => {
  stage = await openStage({ kind: 'nspawn', progress: console.log });
  scene = new Scene(stage);
  await scene.up('dankserver');
});

afterAll(() => stage?.close());

const laid = [[['config', 'slot:shape', 'secrets', 'HF_TOKEN'], { version: '1' }]] as const;

it('a secret that a shape names and nobody has set is asked for, before the host is touched', async () => {
  await scene.lay(qwen, laid);
  const output = await scene.failingUp(qwen);
  expect(output).toContain('pulumi config set --secret --path slot:secrets.HF_TOKEN');
  expect(await scene.host.containers()).toEqual([]);
});

it('reaches the engine, and is found nowhere else', async () => {
  const file = stage.workplace.configFile(qwen);
  const words = ['config', 'set', '--secret', '--path', 'slot:secrets.HF_TOKEN', canary];
  const set = await stage.workplace.run([...words, '--stack', qwen, '--config-file', file]);
  expect(set.exitCode, set.output).toBe(0);
  const preview = await stage.workplace.preview(qwen);
  expect(preview.exitCode, preview.output).toBe(0);
  const up = await scene.up(qwen, '--diff');
  await scene.serves(qwen);
  expect(await scene.host.root('podman exec frank-archon-qwen printenv HF_TOKEN')).toBe(canary);

  const state = await stage.workplace.run(['stack', 'export', '--stack', qwen]);
  const outputs = await stage.workplace.run(['stack', 'output', '--stack', qwen]);
  const onHost = await scene.host.root(
    'cat /usr/local/lib/systemd/system/frank-archon.*; cat /var/log/slot/frank-archon/*; cat $(find /var/lib/slot -type f); journalctl --output=cat; podman inspect frank-archon-qwen; slot status --json',
  );
  const places = {
    'the stack file': await readFile(file, 'utf8'),
    'the preview': preview.output,
    'the update': up,
    'the state': state.output,
    'the outputs': outputs.output,
    'the host': onHost,
  };
  for (const [place, text] of Object.entries(places)) {
    expect(text.length, place).toBeGreaterThan(0);
    expect(text.includes(canary), `the secret is in ${place}`).toBe(false);
  }
  // The search would find it: the name, which may be told, is in what was searched.
  expect(onHost).toContain('frank-archon-HF_TOKEN-1');
  expect(up).toContain('HF_TOKEN');
});

it('is not sent again while it is the same', async () => {
  await scene.withoutRestart(() => scene.upWithoutChanges(qwen));
});
