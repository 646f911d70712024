import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStage, type Stage } from '../../lab/stage.ts';
import type { HostView } from './host-view.ts';
import { deadlineKey, environmentKey, glm, qwen, r9v, Scene, servedNames } from './scene.ts';

/*
 * One life of a host, in the order in which an operator would live it: each test goes on where the one before
 * it ended. The engine of Pulumi, systemd, podman, the registry and ssh are real; the model is the lab's.
 */
let stage: Stage;
let scene: Scene;
let host: HostView;

beforeAll(async () => {
  stage = await openStage({ kind: 'nspawn', progress: console.log });
  scene = new Scene(stage);
  host = scene.host;
});

afterAll(() => stage?.close());

describe('the first day', () => {
  it('a shape is refused while the host is not set up, and says what to do', async () => {
    expect(await scene.failingUp(qwen)).toContain('pulumi up -s dankserver');
  });

  it('the host is set up, and a second time nothing changes', async () => {
    await scene.up('dankserver');
    expect(await scene.up('dankserver')).toMatch(/\d+ unchanged/);
    expect(await host.root('slot status')).toContain('the slot is empty');
  });

  it('qwen serves', async () => {
    const output = await scene.up(qwen);
    expect(output).toContain('preflight');
    await scene.serves(qwen);
  });

  it('a second up has nothing to change', async () => {
    await scene.withoutRestart(() => scene.upWithoutChanges(qwen));
  });

  it('an up while the engine still loads waits for it and does not restart it', async () => {
    await host.root('systemctl restart --no-block frank-archon.service');
    await scene.up(qwen);
    expect(await host.servedNames()).toEqual(servedNames[qwen]);
    expect(await host.root('systemctl show frank-archon.service --property=NRestarts --value')).toBe('0');
    expect(
      await host.root('journalctl --unit frank-archon.service --output=cat --grep=^Starting | wc -l'),
    ).toBe('2');
  });
});

describe('a cutover', () => {
  it('is previewed without a change on the host', async () => {
    const [tree, containers] = [await host.fileTree(), await host.containers()];
    const { exitCode, output } = await stage.workplace.preview(glm);
    expect(exitCode, output).toBe(0);
    expect(output).toContain(`holds now  ${qwen}`);
    expect(output).toContain(`cutover to ${glm}: outage`);
    expect(output).toContain('-Description=frank-archon serving qwen\n+Description=frank-archon serving glm');
    expect(await host.fileTree()).toBe(tree);
    expect(await host.containers()).toEqual(containers);
  });

  it('ends with glm proved and qwen gone', async () => {
    await scene.up(glm);
    await scene.serves(glm);
    expect(await host.containers()).toEqual(['frank-archon-glm']);
    expect(await host.root('systemctl is-enabled frank-archon.service')).toBe('enabled');
    expect(await host.root('ls /run/systemd/system')).not.toContain('frank-archon');
  });

  it('gives the engine the arguments and the environment of the shape', async () => {
    const pid = await host.root("podman inspect --format '{{.State.Pid}}' frank-archon-glm");
    const argv = (await host.root(`tr '\\0' '\\n' </proc/${pid}/cmdline`)).split('\n');
    for (const [flag, value] of [
      ['--max-model-len', '131072'],
      ['--tool-call-parser', 'glm47'],
      ['--gpu-memory-utilization', '0.98'],
    ]) {
      expect(argv[argv.indexOf(flag ?? '') + 1]).toBe(value);
    }
    expect(argv).toContain('--expert-precise-memory');
    const environ = await host.root(`tr '\\0' '\\n' </proc/${pid}/environ`);
    expect(environ.split('\n')).toContain('PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True');
  });
});

describe('a shape that fails is replaced by the one before it', () => {
  const faults: Record<string, { stage: string }> = {
    'exit-at-load': { stage: 'prove: ready' },
    'never-ready': { stage: 'prove: ready' },
    'wrong-name': { stage: 'prove: served names' },
    'wrong-max-length': { stage: 'prove: served names' },
    'empty-completions': { stage: 'prove: completion' },
    'hang-after-headers': { stage: 'prove: completion' },
    'leak-reasoning': { stage: 'prove: completion' },
    'no-tools': { stage: 'prove: tool-call' },
    'crash-after:1': { stage: 'prove:' },
  };

  for (const [fault, expected] of Object.entries(faults)) {
    it(`with ${fault}`, async () => {
      await scene.lay(qwen, [
        [environmentKey('LAB_ENGINE_FAULT'), fault],
        [deadlineKey('boot'), '8 s'],
        [deadlineKey('check'), '2 s'],
      ]);
      const output = await scene.failingUp(qwen);
      expect(output).toContain(`restored at ${expected.stage}`);
      expect(output).toContain(`${glm} serves again and is proved`);
      await scene.serves(glm);

      const again = await stage.workplace.preview(qwen);
      expect(again.output).toMatch(/failed on this host at \d{4}-/);
      expect(again.output).toContain(expected.stage);
    });
  }

  it('and the stack of the one before it has nothing to change', async () => {
    await scene.withoutRestart(() => scene.upWithoutChanges(glm));
  });

  it('keeps the log of the failed engine', async () => {
    const logs = await host.root('ls /var/log/slot/frank-archon');
    expect(logs).toMatch(/^qwen-[0-9a-f]{32}\.log$/m);
  });

  it('can be tried again after it is forgiven', async () => {
    const forgiven = await host.root(`slot release forgive ${qwen}`);
    expect(forgiven).toContain('may be tried again');
  });
});

describe('going back', () => {
  it('is a stack switch, and needs no registry', async () => {
    await stage.lab.registry.stop();
    try {
      await scene.lay(qwen);
      await scene.up(qwen);
      await scene.serves(qwen);
    } finally {
      await stage.lab.registry.start();
    }
  });

  it('works for another kind of engine, whose state is kept', async () => {
    await scene.up(r9v);
    await scene.serves(r9v);
    expect(await host.root('cat /home/dank/r9v-state/q8xl/state')).toBe('kept');
    await scene.up(qwen);
    expect(await host.root('cat /home/dank/r9v-state/q8xl/state')).toBe('kept');
  });

  it('works on the host alone', async () => {
    await host.root('slot rollback');
    await scene.serves(r9v);
    await host.root('slot rollback');
    await scene.serves(qwen);
    await scene.upWithoutChanges(qwen);
  });
});
