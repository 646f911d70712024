import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { dockerShim } from '../../../agent/host-files/docker-shim.ts';
import { hostSetup } from '../../../agent/host-setup.ts';
import { hostTeardown } from '../../../agent/host-teardown.ts';
import type { CommandResult, Outside } from '../../../agent/outside.ts';

const service = 'frank-archon';
const recovery = '/usr/local/lib/systemd/system/frank-archon-recovery.service';
const shimPath = '/usr/local/bin/docker';
const heldSlot = JSON.stringify({
  version: 1,
  epoch: 3,
  changed: 'dank',
  occupant: {
    shape: 'glm-w4a16',
    releaseId: 'r',
    engineIdentity: 'e',
    claim: { token: 't', epoch: 2 },
    since: '2026-10-01T00:00:00Z',
  },
  previousReleaseId: null,
});

/** A test double of a host without an engine: files, links, enabled units, and every command that was run. */
class BareHost implements Outside {
  readonly files = new Map<string, string>();
  readonly links = new Map<string, string>();
  readonly enabled = new Set<string>();
  readonly active = new Set<string>();
  readonly calls: string[] = [];
  failing: string | undefined;

  async run(command: string, args: readonly string[]): Promise<CommandResult> {
    const call = [command, ...args].join(' ');
    this.calls.push(call);
    if (this.failing !== undefined && call.startsWith(this.failing)) {
      return { exitCode: 1, stdout: '', stderr: 'it said no' };
    }
    const unit = args.at(-1) ?? '';
    let stdout = '';
    if (command === 'ln') this.links.set(args[2] ?? '', args[1] ?? '');
    if (call.startsWith('systemctl enable')) this.enabled.add(unit);
    if (call.startsWith('systemctl disable')) this.enabled.delete(unit);
    if (call.startsWith('systemctl is-enabled')) stdout = this.enabled.has(unit) ? 'enabled' : 'disabled';
    if (call.startsWith('systemctl is-active')) stdout = this.active.has(unit) ? 'active' : 'inactive';
    return { exitCode: 0, stdout, stderr: '' };
  }

  async readText(path: string) {
    return this.files.get(path);
  }

  async writeDurably(path: string, text: string) {
    this.files.set(path, text);
  }

  async removeDurably(path: string) {
    for (const file of [...this.files.keys()]) {
      if (file === path || file.startsWith(`${path}/`)) this.files.delete(file);
    }
    this.links.delete(path);
  }

  async list(path: string) {
    return [...this.files.keys()].filter((file) => file.startsWith(`${path}/`));
  }

  async readLink(path: string) {
    return this.links.get(path);
  }

  async kindOf(path: string) {
    if (this.files.has(path)) return 'file';
    return this.links.has(path) ? 'other' : 'absent';
  }

  async append() {}
  async makeFolder() {}
  async sleep() {}
  now = () => new Date(0);
  monotonicSeconds = () => 0;
  request(): Promise<never> {
    throw new Error('host-setup asks no server');
  }
  readPart(): Promise<never> {
    throw new Error('host-setup reads no payload');
  }
  statusOf(): Promise<never> {
    throw new Error('host-setup looks at no payload');
  }
  hashFiles(): never {
    throw new Error('host-setup hashes nothing');
  }
}

let host: BareHost;
beforeEach(() => {
  host = new BareHost();
});

function unitsTouched(): string[] {
  return host.calls.filter((call) => /^systemctl .*(\bstart|stop|restart|kill|--now)\b/.test(call));
}

describe('setting a host up', () => {
  it('enables the recovery at boot without starting it, because it would meet a running cutover', async () => {
    await hostSetup(host, { service });
    expect(host.enabled).toContain('frank-archon-recovery.service');
    expect(unitsTouched()).toEqual(['systemctl enable --quiet --now podman.socket']);
  });

  it('touches no running engine when it is repeated for a new agent', async () => {
    await hostSetup(host, { service });
    host.files.set('/var/lib/slot/frank-archon/slot.json', heldSlot);
    host.active.add('frank-archon.service');
    host.calls.length = 0;
    await hostSetup(host, { service });
    expect(unitsTouched()).toEqual(['systemctl enable --quiet --now podman.socket']);
    expect(host.calls.join('\n')).not.toContain('frank-archon.service');
  });

  it('gives the same files when it is repeated', async () => {
    await hostSetup(host, { service });
    const first = new Map(host.files);
    await hostSetup(host, { service });
    expect(host.files).toEqual(first);
  });

  it('writes nothing where a docker of somebody else is', async () => {
    host.files.set(shimPath, '#!/bin/sh\nexec /opt/docker "$@"\n');
    await expect(hostSetup(host, { service })).rejects.toThrow(`${shimPath} is not ours`);
    expect([...host.files.keys()]).toEqual([shimPath]);
    expect(host.calls).toEqual([]);
  });

  it('writes nothing where a slot program of somebody else is', async () => {
    host.links.set('/usr/local/bin/slot', '/opt/slot/bin/slot');
    await expect(hostSetup(host, { service })).rejects.toThrow('/usr/local/bin/slot is not ours');
    expect(host.files.size).toBe(0);
  });

  it('says which command failed and what it said', async () => {
    host.failing = 'systemctl enable --quiet --now podman.socket';
    await expect(hostSetup(host, { service })).rejects.toThrow(/podman\.socket: it said no/);
  });
});

describe('a service that is renamed', () => {
  it('leaves no unit under its old name', async () => {
    await hostSetup(host, { service: 'frank-primary' });
    await hostSetup(host, { service });
    expect([...host.files.keys()].filter((path) => path.includes('frank-primary'))).toEqual([]);
    expect(host.enabled).not.toContain('frank-primary-recovery.service');
    expect(host.files.has(recovery)).toBe(true);
  });

  it('is refused while a release holds the slot of the old name, with nothing touched', async () => {
    await hostSetup(host, { service });
    host.files.set('/var/lib/slot/frank-archon/slot.json', heldSlot);
    const before = new Map(host.files);
    await expect(hostSetup(host, { service: 'frank-next' })).rejects.toThrow(/held by glm-w4a16/);
    expect(host.files).toEqual(before);
  });
});

describe('taking a host down', () => {
  it('leaves nothing of an unused host', async () => {
    await hostSetup(host, { service });
    await hostTeardown(host, service);
    expect(host.files.size).toBe(0);
    expect(host.links.size).toBe(0);
    expect(host.enabled.size).toBe(0);
  });

  it('is refused while a release holds the slot, with nothing touched, and names the command that empties it', async () => {
    await hostSetup(host, { service });
    host.files.set('/var/lib/slot/frank-archon/slot.json', heldSlot);
    const before = new Map(host.files);
    host.calls.length = 0;
    await expect(hostTeardown(host, service)).rejects.toThrow('pulumi destroy -s glm-w4a16');
    expect(host.files).toEqual(before);
    expect(host.calls).toEqual([]);
  });

  it('is refused while a cutover runs', async () => {
    await hostSetup(host, { service });
    host.active.add('frank-archon-cutover.service');
    await expect(hostTeardown(host, service)).rejects.toThrow('a cutover runs');
    expect(host.files.has(recovery)).toBe(true);
  });

  it('leaves a socket enabled that was enabled before us, also after a second set-up', async () => {
    host.enabled.add('podman.socket');
    await hostSetup(host, { service });
    await hostSetup(host, { service });
    await hostTeardown(host, service);
    expect(host.enabled).toContain('podman.socket');
  });

  it('disables a socket that only we enabled, also after a second set-up', async () => {
    await hostSetup(host, { service });
    await hostSetup(host, { service });
    await hostTeardown(host, service);
    expect(host.enabled).not.toContain('podman.socket');
  });

  it('leaves a docker that somebody put in the place of ours', async () => {
    await hostSetup(host, { service });
    host.files.set(shimPath, '#!/bin/sh\n');
    await hostTeardown(host, service);
    expect(host.files.get(shimPath)).toBe('#!/bin/sh\n');
  });

  it('keeps records, and says so', async () => {
    await hostSetup(host, { service });
    host.files.set('/var/lib/slot/frank-archon/history.jsonl', '');
    const report = await hostTeardown(host, service);
    expect(host.files.has('/var/lib/slot/frank-archon/history.jsonl')).toBe(true);
    expect(report.join('\n')).toMatch(/^\/var\/lib\/slot\/frank-archon: stays with .*history\.jsonl$/m);
  });
});

describe.runIf(process.platform === 'linux')('the docker shim', () => {
  async function runShim(userId: number): Promise<string> {
    const folder = mkdtempSync(join(tmpdir(), 'slot-shim-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const program = (name: string, text: string) => {
      writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`);
      chmodSync(join(folder, name), 0o755);
    };
    program('id', `echo ${userId}`);
    program('sudo', 'echo "sudo $*"');
    program('podman', `echo "podman $* at \${CONTAINER_HOST:-this host}"`);
    writeFileSync(join(folder, 'docker'), dockerShim);
    const { stdout } = await execa('sh', [join(folder, 'docker'), 'system', 'dial-stdio'], {
      env: { PATH: `${folder}:/usr/bin:/bin`, CONTAINER_HOST: 'ssh://elsewhere' },
      stdin: 'ignore',
    });
    return stdout;
  }

  it('gives an ordinary login root’s podman, without a question', async () => {
    expect(await runShim(1000)).toBe('sudo -n podman system dial-stdio');
  });

  it('calls podman of this host directly for root', async () => {
    expect(await runShim(0)).toBe('podman system dial-stdio at this host');
  });
});
