import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { plannedShape } from '../../components/planned-shape.ts';
import { openStage, type Stage } from '../../lab/stage.ts';
import { claimOf, type Manifest, type Release } from '../../shape/release.ts';
import type { HostView } from './host-view.ts';
import { environmentKey, glm, qwen, Scene, servedNames } from './scene.ts';

/* What only a host with a kernel of its own can show. Its processor is emulated: everything takes longer. */
vi.setConfig({ testTimeout: 900_000, hookTimeout: 1_500_000 });

let stage: Stage;
let scene: Scene;
let host: HostView;

beforeAll(async () => {
  stage = await openStage({ kind: 'vm', progress: console.log });
  scene = new Scene(stage);
  host = scene.host;
  await scene.up('dankserver');
  await scene.up(qwen);
});

afterAll(() => stage?.close());

async function memlockOf(container: string): Promise<string[]> {
  const pid = await host.root(`podman inspect --format '{{.State.Pid}}' ${container}`);
  const line = await host.root(`grep '^Max locked memory' /proc/${pid}/limits`);
  return line.split(/\s+/).slice(3, 5);
}

describe('on a kernel of its own', () => {
  it('the engine may lock all the memory that the shape asks for', async () => {
    await scene.serves(qwen);
    expect(await memlockOf('frank-archon-qwen')).toEqual(['unlimited', 'unlimited']);
  });

  it('a unit without the limit fails at that part of the conjunction, and the previous comes back', async () => {
    const { release: whole } = plannedShape(stage.workplace.folder, glm);
    const release: Release = { ...whole, unit: whole.unit.replace(/^LimitMEMLOCK=.*\n/m, '') };
    expect(release.unit).not.toBe(whole.unit);
    const { epoch } = await host.status();
    const manifest: Manifest = { version: 1, release, claim: claimOf({ epoch, occupant: qwen }, release) };
    const answer = await stage.lab.ssh('slot cutover', { root: true, input: JSON.stringify(manifest) });
    expect(answer.exitCode, answer.stderr).toBe(20);
    expect(JSON.parse(answer.stdout)).toMatchObject({
      kind: 'restored',
      stage: 'prove: locked memory is what the shape asks for',
      serves: qwen,
    });
    await scene.serves(qwen);
  });

  it('power cut in the middle of a cutover: the previous comes back', async () => {
    await scene.lay(glm, [[environmentKey('LAB_ENGINE_LOAD_SECONDS'), '60']]);
    const run = stage.workplace.startUp(glm, '--yes', '--non-interactive');
    const tooEarly = run.then(({ all }) => Promise.reject(new Error(`pulumi up ended before that: ${all}`)));
    await Promise.race([scene.untilPhase('prove', 240), tooEarly]);
    await stage.lab.cutPower();
    expect((await run).exitCode).not.toBe(0);
    await host.until('qwen serves', 240, async () => (await host.servedNames())[0] === servedNames[qwen][0]);
    await host.until('the record is closed', 240, async () => {
      const { transaction } = await host.status();
      return transaction?.outcome !== undefined && !transaction.running;
    });
    const outcome = (await host.status()).transaction?.outcome;
    expect(outcome, outcome?.message).toMatchObject({ kind: 'restored', serves: qwen });
    await scene.serves(qwen);
  });
});
