import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { LabHost } from '../../lab/host.ts';
import { createNspawn } from '../../lab/nspawn.ts';
import type { Change } from '../../lab/overlay.ts';
import { type PulumiRun, Workplace } from '../../lab/workplace.ts';
import { inspectHost } from '../../remote/inspect.ts';
import { fingerprintOf } from '../../remote/ssh.ts';
import { loadStackFile } from '../../shape/configuration.ts';
import { prepareToolchain } from '../../toolchain/prepare.ts';

const stack = 'dankserver';
/** No image is pulled here. */
const images = {
  repository: 'registry.lab:5000/none',
  vllm: `sha256:${'0'.repeat(64)}`,
  r9v: `sha256:${'0'.repeat(64)}`,
};
const everythingOfOurs =
  'find /usr/local /etc/systemd /var/lib/slot /var/log/slot /home/dank /root \\( -type f -o -type l \\) 2>/dev/null | sort';

let lab: LabHost;
let workplace: Workplace;
let bare: string;
let keys: string;

const hostValue = (key: string, value: unknown): Change => [['config', 'slot:host', key], value];

async function onHost(command: string): Promise<string> {
  const { exitCode, stdout, stderr } = await lab.ssh(command, { root: true });
  if (exitCode !== 0) throw new Error(`${command}: exit ${exitCode}: ${stderr}`);
  return stdout.trim();
}

function expectSuccess({ exitCode, output }: PulumiRun): void {
  expect(exitCode, output).toBe(0);
}

beforeAll(async () => {
  const toolchain = await prepareToolchain();
  lab = await createNspawn({ name: `host-up-${process.pid}` });
  workplace = await Workplace.create(lab, toolchain, images);
  keys = await mkdtemp(join(tmpdir(), 'slot-keys-'));
  bare = await onHost(everythingOfOurs);
});

afterAll(async () => {
  await workplace?.close();
  await lab?.down();
  await rm(keys, { recursive: true, force: true });
});

describe('a host that cannot be reached as configured', () => {
  afterEach(() => workplace.lay(stack));

  it('is sent nothing when it answers with another key, and both fingerprints are shown', async () => {
    await execa('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(keys, 'other')]);
    const other = (await readFile(join(keys, 'other.pub'), 'utf8')).split(' ').slice(0, 2).join(' ');
    await workplace.lay(stack, [hostValue('hostKey', other)]);
    const { exitCode, output } = await workplace.up(stack);
    expect(exitCode).not.toBe(0);
    expect(output).toContain('host key changed, nothing was sent');
    expect(output).toContain(fingerprintOf(other));
    expect(output).toContain(fingerprintOf(lab.hostKey));
    expect(await onHost(everythingOfOurs)).toBe(bare);
  });

  it('can be planned for, and fails in up before any of its resources', async () => {
    await workplace.lay(stack, [hostValue('sshPort', 9)]);
    const preview = await workplace.preview(stack);
    expectSuccess(preview);
    expect(preview.output).toContain('not reachable');
    const up = await workplace.up(stack, '--skip-preview');
    expect(up.exitCode).not.toBe(0);
    expect(up.output).not.toContain('privileges');
  });
});

it('says which command sets up a host that is not', async () => {
  const view = await inspectHost(await configuredHost(), undefined);
  expect(view).toMatchObject({
    kind: 'not-set-up',
    message: expect.stringContaining('`pulumi up -s dankserver`'),
  });
});

it('refuses a host that cannot work with every reason at once, and installs nothing', async () => {
  await onHost(
    'mv /usr/bin/curl /usr/bin/curl.away; mount --bind /usr/local /usr/local && mount -o remount,bind,noexec /usr/local',
  );
  try {
    const { exitCode, output } = await workplace.up(stack);
    expect(exitCode).not.toBe(0);
    expect(output).toContain('tools: not there for root: curl');
    expect(output).toContain('/usr/local: nothing can be executed there');
    expect(output).toContain('mounted after systemd has read its units');
  } finally {
    await onHost('umount /usr/local; mv /usr/bin/curl.away /usr/bin/curl');
  }
  expect(await onHost(everythingOfOurs)).toBe(bare);
});

it('sets a bare host up, and sees nothing to do the second time', async () => {
  const first = await workplace.up(stack);
  expectSuccess(first);
  expect(await onHost('slot --version')).toMatch(/^[0-9a-f]{12}$/);
  expect(await onHost('ls -A /home/dank/.slot-staging 2>&1 || true')).toContain('No such file');
  const second = await workplace.up(stack);
  expectSuccess(second);
  expect(second.output).toContain('7 unchanged');
  expect(second.output).not.toMatch(/updated|created|replaced/);
});

it('answers an inspection over one connection', async () => {
  const view = await inspectHost(await configuredHost(), undefined);
  expect(view).toMatchObject({ kind: 'inspected', inspection: { service: 'frank-archon', occupant: null } });
});

it('gives an ordinary login the image store of root under docker’s name', async () => {
  await onHost('tar -C /etc -c hostname | podman import - localhost/seen-by-both:1');
  const { stdout } = await lab.ssh('docker images --format "{{.Repository}}"');
  expect(stdout).toContain('localhost/seen-by-both');
  await onHost('podman rmi localhost/seen-by-both:1');
});

it('leaves a running engine alone when the host program is installed anew', async () => {
  await onHost('systemd-run --quiet --unit=frank-archon.service sleep infinity');
  const invocation = () =>
    onHost('systemctl show --value --property=InvocationID,MainPID frank-archon.service');
  const before = await invocation();
  await onHost('rm /usr/local/libexec/slot/slot');
  await execa('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(keys, 'rotated')]);
  const rotated = (await readFile(join(keys, 'rotated.pub'), 'utf8')).trim();
  await onHost(`echo '${rotated}' >> /home/dank/.ssh/authorized_keys`);
  await workplace.lay(stack, [hostValue('privateKeyPath', join(keys, 'rotated'))]);
  expectSuccess(await workplace.up(stack));
  await workplace.lay(stack);
  expect(await onHost('slot --version')).toMatch(/^[0-9a-f]{12}$/);
  expect(await invocation()).toBe(before);
  await onHost('systemctl stop frank-archon.service');
});

it('comes back from a reboot with socket and recovery in place and without a failed unit of ours', async () => {
  await lab.reboot();
  expect(await onHost('systemctl is-active podman.socket')).toBe('active');
  expect(await onHost('systemctl is-enabled frank-archon-recovery.service')).toBe('enabled');
  expect(await onHost('systemctl --failed --no-legend')).not.toContain('frank-archon');
});

it('refuses to go while a release holds the slot, and keeps the whole stack', async () => {
  const slot = {
    version: 1,
    epoch: 1,
    changed: 'test',
    occupant: {
      shape: 'glm-w4a16',
      releaseId: 'r',
      engineIdentity: 'e',
      claim: { token: 't', epoch: 0 },
      since: '2026-10-01T00:00:00Z',
    },
    previousReleaseId: null,
  };
  await onHost(`echo '${JSON.stringify(slot)}' > /var/lib/slot/frank-archon/slot.json`);
  const before = await onHost(everythingOfOurs);
  const resources = await resourcesOfStack();
  const destroy = await workplace.destroy(stack);
  await onHost('rm /var/lib/slot/frank-archon/slot.json');
  expect(destroy.exitCode).not.toBe(0);
  expect(destroy.output).toContain('frank-archon is held by glm-w4a16');
  expect(await onHost(everythingOfOurs)).toBe(
    before
      .split('\n')
      .filter((path) => !path.endsWith('/slot.json'))
      .join('\n'),
  );
  expect(await resourcesOfStack()).toEqual(resources);
  expect(resources).toHaveLength(8);
});

it('leaves nothing behind when it is destroyed', async () => {
  const destroy = await workplace.destroy(stack);
  expectSuccess(destroy);
  await onHost("sed -i '$d' /home/dank/.ssh/authorized_keys");
  expect(await onHost(everythingOfOurs)).toBe(bare);
  expect(await onHost('systemctl is-enabled podman.socket || true')).toBe('disabled');
});

it('works for a host whose login is root', async () => {
  await onHost(
    'mkdir -p /root/.ssh && cp /home/dank/.ssh/authorized_keys /root/.ssh/ && ' +
      'sed -i "s/PermitRootLogin no/PermitRootLogin yes/" /etc/ssh/sshd_config.d/lab.conf && systemctl reload ssh',
  );
  await workplace.lay(stack, [hostValue('user', 'root')]);
  expectSuccess(await workplace.up(stack));
  expectSuccess(await workplace.destroy(stack));
});

async function resourcesOfStack(): Promise<string[]> {
  const { output } = await workplace.run(['stack', 'export', '--stack', stack]);
  return [...output.matchAll(/"urn": "(.*)"/g)].map(([, urn]) => String(urn)).sort();
}

async function configuredHost() {
  const path = workplace.configFile(stack);
  const file = loadStackFile(path, await readFile(path, 'utf8'));
  if (file.kind !== 'host') throw new Error(`${path} describes no host`);
  return file.host;
}
