import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LabHost } from '../../lab/host.ts';
import { canRunLab } from '../../lab/lab.ts';
import { quoteForShell, sshArguments } from '../../lab/ssh.ts';
import { findProcess } from '../../lab/vm/machine.ts';
import { machineFolder } from '../../lab/vm/template.ts';
import { attachVm, createVm, removeVm } from '../../lab/vm.ts';

const ability = await canRunLab('vm');
const name = `vm-test-${process.pid}`;

/** Sets up what the tests run in containers: Debian's static busybox as an image. */
const importImage = 'tar -C / -c usr/bin/busybox | podman import --quiet - localhost/busybox:lab';

test.each(['', 'Lab', '../elsewhere', 'a/b', 'a b', '-lab', 'x'.repeat(33)])(
  'no virtual machine is named "%s"',
  async (bad) => {
    await expect(createVm({ name: bad })).rejects.toThrow('cannot name a lab');
  },
);

test('a machine that nobody created cannot be attached to, and removing it is no error', async () => {
  await expect(attachVm('vm-test-absent')).rejects.toThrow('no virtual machine named "vm-test-absent"');
  await removeVm('vm-test-absent');
});

describe.skipIf(!ability.ok)('a virtual machine', () => {
  let host: LabHost;

  const asRoot = async (command: string): Promise<string> => {
    const { exitCode, stdout, stderr } = await host.ssh(command, { root: true });
    if (exitCode !== 0) throw new Error(`${command}: exit ${exitCode}: ${stderr}`);
    return stdout;
  };
  const bootId = () => asRoot('cat /proc/sys/kernel/random/boot_id');

  beforeAll(async () => {
    host = await createVm({ name });
    await asRoot(importImage);
  });

  afterAll(async () => {
    await removeVm(name);
  });

  test('is a host of its own: kernel, name, clock, no failed unit', async () => {
    expect(await asRoot('uname --kernel-release')).not.toBe(
      (await execa('uname', ['-r'])).stdout.concat('\n'),
    );
    expect(await asRoot('hostname')).toBe(`${name}\n`);
    expect(await asRoot('systemctl is-system-running --wait')).toBe('running\n');
    const asked = Date.now();
    const clock = Number(await asRoot('date +%s.%N')) * 1000;
    expect(clock).toBeGreaterThan(asked - 2000);
    expect(clock).toBeLessThan(Date.now() + 2000);
  });

  test('has podman as Debian configures it, with crun, and nothing of the product', async () => {
    expect(await asRoot("podman info --format '{{.Host.OCIRuntime.Name}} {{.Host.NetworkBackend}}'")).toBe(
      'crun netavark\n',
    );
    expect((await host.ssh('ls /etc/containers/containers.conf')).exitCode).not.toBe(0);
    expect((await host.ssh('command -v docker slot node python3')).stdout).toBe('');
  });

  test('refuses a second machine of its name, and goes on', async () => {
    const before = await bootId();
    await expect(createVm({ name })).rejects.toThrow('runs already');
    expect(await bootId()).toBe(before);
  });

  test('refuses root and other keys', async () => {
    const target = { ...host, port: host.sshPort, user: 'root' };
    const refused = await execa('ssh', [...sshArguments(target), 'true'], { reject: false, stdin: 'ignore' });
    expect(refused.stderr).toContain('Permission denied');
  });

  test('passes standard input, standard error and a failure on', async () => {
    const result = await host.ssh('cat; echo lost >&2; exit 7', { input: "two\nlines 'quoted' $HOME" });
    expect(result).toEqual({ exitCode: 7, stdout: "two\nlines 'quoted' $HOME", stderr: 'lost\n' });
  });

  test('gives a unit, and the container in it, memlock without a limit; another limit arrives as well', async () => {
    for (const [limit, expected] of [
      ['infinity', 'unlimited'],
      ['8M', '8192'],
    ]) {
      const run = 'podman run --rm --ulimit=host --network=none localhost/busybox:lab /usr/bin/busybox sh -c';
      const printed = await asRoot(
        `systemd-run --pipe --quiet --property=LimitMEMLOCK=${limit} ${run} ${quoteForShell('ulimit -l')}`,
      );
      expect(printed).toBe(`${expected}\n`);
    }
  });

  test('runs a container on a bridge of its own', async () => {
    const printed = await asRoot(
      'podman run --rm localhost/busybox:lab /usr/bin/busybox ip -o -4 address show eth0',
    );
    expect(printed).toContain('10.88.');
  });

  test('serves the engine port, and nothing answers there before something listens', async () => {
    await expect(fetch(host.engineUrl)).rejects.toThrow();
    await asRoot(
      'mkdir -p /srv/www && echo served >/srv/www/health && systemd-run --quiet --unit=www busybox httpd -f -p 7770 -h /srv/www',
    );
    await expect
      .poll(
        async () =>
          fetch(`${host.engineUrl}/health`)
            .then((answer) => answer.text())
            .catch(() => ''),
        { timeout: 30_000 },
      )
      .toBe('served\n');
  });

  test('reaches this machine, and its registry by name', async () => {
    const here = createServer((socket) => socket.end('from this machine\n'));
    await new Promise<void>((resolve) => here.listen(0, '127.0.0.1', resolve));
    const address = here.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    try {
      expect(await asRoot(`busybox nc registry.lab ${port} </dev/null`)).toBe('from this machine\n');
    } finally {
      here.close();
    }
  });

  test('boots again after an orderly reboot', async () => {
    const before = await bootId();
    await asRoot('echo written >/root/unsynced; echo gone >/run/volatile');
    await host.reboot();
    expect(await bootId()).not.toBe(before);
    expect(await asRoot('cat /root/unsynced; ls /run/volatile || true')).toBe('written\n');
  });

  test('keeps at a power cut what was synced, and no process of before', async () => {
    const before = await bootId();
    await asRoot(
      'head -c 5000000 /dev/urandom >/root/synced; sync /root/synced; sha256sum /root/synced >/root/sum; sync /root/sum /root; systemd-run --quiet --unit=before sleep 10000; echo gone >/run/volatile',
    );
    const qemu = await findProcess(machineFolder(name));
    await host.cutPower();
    expect(existsSync(`/proc/${qemu}`)).toBe(false);
    expect(await bootId()).not.toBe(before);
    expect(await asRoot('sha256sum --check /root/sum')).toBe('/root/synced: OK\n');
    expect((await host.ssh('systemctl is-active before; ls /run/volatile')).stdout).toBe('inactive\n');
  });

  test('is found by another process, and taken down leaves nothing behind', async () => {
    const attached = await attachVm(name);
    expect(await attached.ssh('hostname')).toMatchObject({ stdout: `${name}\n` });
    const qemu = await findProcess(machineFolder(name));
    await attached.down();
    expect(existsSync(machineFolder(name))).toBe(false);
    expect(await readFile(`/proc/${qemu}/cmdline`, 'utf8').catch(() => '')).toBe('');
    expect((await host.ssh('true')).exitCode).toBe(255);
    await new Promise<void>((resolve, reject) => {
      const probe = createServer().once('error', reject);
      probe.listen(host.sshPort, '127.0.0.1', () => probe.close(() => resolve()));
    });
  });
});
