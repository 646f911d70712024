import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStage, type Stage } from '../../lab/stage.ts';
import type { HostView } from './host-view.ts';
import { deadlineKey, environmentKey, glm, qwen, r9v, Scene, servedNames } from './scene.ts';

/* What comes between: other people, lost connections, dead processes, reboots. Tests go on from one another. */
let stage: Stage;
let scene: Scene;
let host: HostView;

beforeAll(async () => {
  stage = await openStage({ kind: 'nspawn', progress: console.log });
  scene = new Scene(stage);
  host = scene.host;
  await scene.up('dankserver');
  await scene.up(qwen);
});

afterAll(() => stage?.close());

/** A glm that takes its time, so that something can happen in between; its own release each time. */
async function laySlowGlm(seconds: number): Promise<void> {
  await scene.lay(glm, [[environmentKey('LAB_ENGINE_LOAD_SECONDS'), String(seconds)]]);
}

describe('two at once', () => {
  it('one wins, the other is refused with nothing touched', async () => {
    await laySlowGlm(6);
    const first = scene.stage.workplace.startUp(glm, '--yes', '--non-interactive');
    await scene.untilPhase('prove');
    const invocation = await host.invocation();
    const second = await scene.failingUp(r9v);
    expect(second).toMatch(/cutover to glm-w4a16 is under way: started by dank/);
    expect(await host.invocation()).toBe(invocation);
    const { exitCode, all } = await first;
    expect(exitCode, all).toBe(0);
    await scene.serves(glm);
  });

  it('started in the same second, exactly one serves', async () => {
    const runs = await Promise.all([stage.workplace.up(qwen), stage.workplace.up(r9v)]);
    const [winner, ...others] = [qwen, r9v].filter((_stack, index) => runs[index]?.exitCode === 0);
    expect(others).toEqual([]);
    expect((await host.status()).occupant?.shape).toBe(winner);
    const loser = runs.find((run) => run.exitCode !== 0)?.output ?? '';
    expect(loser).toMatch(/nothing was touched|under way/i);
  });
});

describe('a plan gone stale is refused with nothing touched', () => {
  it('when the occupant changes between preview --save-plan and up --plan', async () => {
    await scene.lay(glm);
    await scene.up(qwen);
    const plan = `${stage.workplace.folder}/plan.json`;
    expect((await stage.workplace.preview(glm, '--save-plan', plan)).exitCode).toBe(0);
    await scene.up(r9v);
    await scene.withoutRestart(async () => {
      expect(await scene.failingUp(glm, '--plan', plan)).toMatch(/violates plan|epoch/);
    });
    await scene.serves(r9v);
  });

  it('when the occupant changes while the prompt of up waits', async () => {
    const prompt = stage.workplace.startUpAtPrompt(glm);
    await prompt.asks();
    await host.root('slot rollback');
    await scene.serves(qwen);
    await scene.withoutRestart(async () => {
      const { exitCode, output } = await prompt.answerYes();
      expect(exitCode, output).not.toBe(0);
      expect(output).toMatch(/epoch \d+/);
      expect(output).toContain(r9v);
    });
  });
});

describe('an update is not an outage', () => {
  it('when only a deadline of the checks changes', async () => {
    await scene.lay(qwen, [[deadlineKey('check'), '6 s']]);
    await scene.withoutRestart(async () => {
      expect(await scene.up(qwen)).toContain('record only, no outage');
    });
    await scene.withoutRestart(() => scene.upWithoutChanges(qwen));
  });

  it('when the ssh key is rotated', async () => {
    const key = `${stage.workplace.folder}/rotated`;
    await execa('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key], { stdin: 'ignore' });
    const { stdout: publicKey } = await execa('cat', [`${key}.pub`]);
    await host.root(`echo '${publicKey}' >>/home/dank/.ssh/authorized_keys`);
    await stage.workplace.lay('dankserver', [[['config', 'slot:host', 'privateKeyPath'], key]]);
    await scene.withoutRestart(() => scene.up(qwen));
    await scene.serves(qwen);
  });

  it('when the answer of a committed cutover was lost', async () => {
    await laySlowGlm(3);
    const run = stage.workplace.startUp(glm, '--yes', '--non-interactive');
    await scene.untilPhase('prove');
    run.kill('SIGKILL');
    await run;
    await scene.untilNoTransactionRuns();
    await scene.serves(glm);
    await stage.workplace.run(['cancel', '--yes', '--stack', glm]);
    await scene.withoutRestart(() => scene.up(glm));
    await scene.withoutRestart(() => scene.upWithoutChanges(glm));
  });
});

describe('a cutover goes on', () => {
  it('when the ssh connection is cut in the middle', async () => {
    await scene.lay(qwen, [[environmentKey('LAB_ENGINE_LOAD_SECONDS'), '5']]);
    const run = stage.workplace.startUp(qwen, '--yes', '--non-interactive');
    await scene.untilPhase('prove');
    await host.root(`
      process=$(pgrep --oldest --full 'slot/.*agent.* cutover$')
      while [ "$(cat /proc/$process/comm)" != sshd-session ]; do process=$(cut -d' ' -f4 /proc/$process/stat); done
      kill -KILL $process
    `);
    expect((await run).exitCode).not.toBe(0);
    await scene.untilNoTransactionRuns();
    await scene.serves(qwen);
    await scene.withoutRestart(() => scene.up(qwen));
  });

  it('and is joined by the next up, when pulumi was killed', async () => {
    await laySlowGlm(8);
    const run = stage.workplace.startUp(glm, '--yes', '--non-interactive');
    await scene.untilPhase('prove');
    run.kill('SIGKILL');
    await run;
    await stage.workplace.run(['cancel', '--yes', '--stack', glm]);
    const joined = await scene.up(glm);
    expect(joined).toContain('joins the cutover that dank started');
    await scene.serves(glm);
  });

  it('when its own process is killed: what it left open is ended', async () => {
    await scene.lay(qwen, [[environmentKey('LAB_ENGINE_LOAD_SECONDS'), '6']]);
    const run = stage.workplace.startUp(qwen, '--yes', '--non-interactive');
    await scene.untilPhase('prove');
    await host.root('systemctl kill --signal=KILL frank-archon-cutover.service');
    const { exitCode, all } = await run;
    expect(exitCode, all).not.toBe(0);
    expect(all).toContain('prove: interrupted');
    await scene.serves(glm);
  });
});

describe('the host is rebooted', () => {
  it('after a commit the committed shape comes back without the agent, and boot does not wait for it', async () => {
    await laySlowGlm(8);
    await scene.up(glm);
    await host.root('chmod 000 /usr/local/libexec/slot');
    await stage.lab.reboot();
    await host.until(
      'multi-user.target',
      30,
      async () => (await host.root('systemctl is-active multi-user.target || true')) === 'active',
    );
    expect(await host.root('systemctl is-active frank-archon.service || true')).toBe('activating');
    await host.until('glm serves', 60, async () => (await host.servedNames())[0] === servedNames[glm][0]);
    await host.root('chmod 755 /usr/local/libexec/slot');
    await scene.serves(glm);
  });

  for (const phase of ['preflight', 'prove']) {
    it(`in the phase ${phase} of a cutover the previous shape comes back`, async () => {
      await scene.lay(qwen, [[environmentKey('LAB_ENGINE_LOAD_SECONDS'), '20']]);
      const run = stage.workplace.startUp(qwen, '--yes', '--non-interactive');
      await scene.untilPhase(phase);
      await stage.lab.reboot();
      expect((await run).exitCode).not.toBe(0);
      await host.until('the record is closed', 90, async () => {
        const { transaction } = await host.status();
        return transaction?.outcome !== undefined && !transaction.running;
      });
      await host.until('glm serves', 60, async () => (await host.status()).occupant?.state === 'serving');
      await scene.serves(glm);
      expect(await host.root('ls /run/systemd/system')).not.toContain('frank-archon');
      await stage.workplace.run(['cancel', '--yes', '--stack', qwen]);
    });
  }
});

describe('something foreign holds the name: refused, and nothing of it is touched', () => {
  const foreign: Record<string, { make: string; unmake: string; told: RegExp }> = {
    'a drop-in in /etc': {
      make: 'mkdir -p /etc/systemd/system/frank-archon.service.d && printf "[Service]\\nLimitMEMLOCK=1M\\n" >/etc/systemd/system/frank-archon.service.d/old.conf && systemctl daemon-reload',
      unmake: 'rm -r /etc/systemd/system/frank-archon.service.d && systemctl daemon-reload',
      told: /drop-in: .*old\.conf/,
    },
    'a container of this name': {
      make: 'podman create --name frank-archon-old --network=none --entrypoint cat $(podman image ls --quiet | head -n 1)',
      unmake: 'podman rm --force frank-archon-old',
      told: /container frank-archon-old .* was not started by a shape's unit/,
    },
    'a unit in /etc': {
      make: 'printf "[Service]\\nExecStart=/bin/sleep 1000\\n" >/etc/systemd/system/frank-archon.service && systemctl daemon-reload',
      unmake: 'rm /etc/systemd/system/frank-archon.service && systemctl daemon-reload',
      told: /\/etc\/systemd\/system\/frank-archon\.service/,
    },
  };
  for (const [what, { make, unmake, told }] of Object.entries(foreign)) {
    it(what, async () => {
      await scene.lay(qwen);
      await host.root(make);
      try {
        await scene.withoutRestart(async () => {
          expect(await scene.failingUp(qwen)).toMatch(told);
        });
        expect(await host.servedNames()).toEqual(servedNames[glm]);
      } finally {
        await host.root(unmake);
      }
    });
  }
});

describe('destroy', () => {
  it('of a stack that does not hold the slot leaves the engine and the way back', async () => {
    await laySlowGlm(2);
    await scene.up(glm);
    await scene.lay(qwen);
    await scene.up(qwen);
    await scene.withoutRestart(async () => {
      const { exitCode, output } = await stage.workplace.destroy(glm);
      expect(exitCode, output).toBe(0);
    });
    await scene.serves(qwen);
    await host.root('slot rollback');
    await scene.serves(glm);
    await host.root('slot rollback');
  });

  it('of the host while a release holds the slot is refused', async () => {
    const { exitCode, output } = await stage.workplace.destroy('dankserver');
    expect(exitCode).not.toBe(0);
    expect(output).toContain(`frank-archon is held by ${qwen}`);
    await scene.serves(qwen);
  });

  it('of the stack that holds it stops the engine and leaves payloads, state and images', async () => {
    const images = await host.root('podman image ls --quiet --no-trunc | sort -u');
    const folders = await host.root(
      "find /home/dank/models /home/dank/r9v-state -printf '%p %s %T@\\n' | sort",
    );
    const { exitCode, output } = await stage.workplace.destroy(qwen);
    expect(exitCode, output).toBe(0);
    expect(await host.servedNames()).toEqual([]);
    expect(await host.containers()).toEqual([]);
    expect(await host.root('podman image ls --quiet --no-trunc | sort -u')).toBe(images);
    expect(await host.root("find /home/dank/models /home/dank/r9v-state -printf '%p %s %T@\\n' | sort")).toBe(
      folders,
    );
    expect(await host.root('systemctl is-enabled frank-archon.service || true')).toMatch(/not-found|^$/);
  });
});
