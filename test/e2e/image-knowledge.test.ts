import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openStage, type Stage } from '../../lab/stage.ts';
import { loadImageKnowledge } from '../../shape/configuration.ts';
import { glm, Scene } from './scene.ts';

/* What an image tells of itself, and an engine that asks for a key: both are asked of real containers. */
const key = 'canary-1f0c77d2-opens';
const project = join(import.meta.dirname, '../..');

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
    ['cli/main.ts', ...words, '--folder', stage.workplace.folder],
    { reject: false, all: true, cwd: project },
  );
  return { exitCode, output: all };
}

it('an image that is not on the host is not asked, and nothing is written', async () => {
  const { exitCode, output } = await slot('image', 'learn', glm);
  expect(exitCode).not.toBe(0);
  expect(output).toContain('absent on this host');
  expect(await readdir(stage.workplace.folder)).not.toContain('images');
});

it('an engine that asks for a key is proved with it, and the key is nowhere else', async () => {
  await scene.lay(glm, [[['config', 'slot:shape', 'engine', 'apiKey'], { version: '1' }]]);
  const file = stage.workplace.configFile(glm);
  const words = ['config', 'set', '--secret', '--path', 'slot:secrets.VLLM_API_KEY', key];
  const set = await stage.workplace.run([...words, '--stack', glm, '--config-file', file]);
  expect(set.exitCode, set.output).toBe(0);
  const up = await scene.up(glm);
  // Before it is asked for by hand: the journal has the command lines of sudo.
  const onHost = await scene.host.root(
    'cat /usr/local/lib/systemd/system/frank-archon.*; cat /var/log/slot/frank-archon/*; cat $(find /var/lib/slot -type f); journalctl --output=cat; podman inspect frank-archon-glm',
  );
  expect(onHost).toContain('frank-archon-VLLM_API_KEY-1');
  expect(onHost.includes(key), 'the key is on the host in plain text').toBe(false);
  expect(up.includes(key), 'the key is in the output').toBe(false);
  const ask = 'curl -s -o /dev/null -w %{http_code} http://127.0.0.1:7770/v1/models';
  expect(await scene.host.root(ask)).toBe('401');
  expect(await scene.host.root(`${ask} -H 'Authorization: Bearer ${key}'`)).toBe('200');
});

it('the image on the host tells what it takes, while the engine serves', async () => {
  await scene.withoutRestart(async () => {
    const { exitCode, output } = await slot('image', 'learn', glm);
    expect(exitCode, output).toBe(0);
  });
  const folder = join(stage.workplace.folder, 'images');
  const [name = ''] = await readdir(folder);
  const knowledge = loadImageKnowledge(name, await readFile(join(folder, name), 'utf8'));
  expect(knowledge).toMatchObject({ complete: true, entrypoint: ['vllm', 'serve'] });
  expect(knowledge.digest).toBe(stage.images.vllm);
  expect(knowledge.toolParsers).toContain('glm47');
  expect(knowledge.flags['--enable-expert-offload']?.takes).toBe('nothing');
});
