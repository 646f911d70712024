import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { labCache } from '../../lab/cache.ts';
import { buildEngineImage } from '../../lab/engine/image.ts';
import { LAB_USER } from '../../lab/guest-tree.ts';
import { attachLab, canRunLab, createLab, type Lab, listLabs } from '../../lab/lab.ts';
import { hostSideOf } from '../../lab/nspawn.ts';
import { pushImage, REGISTRY, registryAt } from '../../lab/registry.ts';
import { quoteForShell, sshArguments } from '../../lab/ssh.ts';

const ability = await canRunLab('nspawn');
const REPOSITORY = 'tcclaviger/vllm';

describe.skipIf(!ability.ok)('a lab in systemd-nspawn', () => {
  let lab: Lab;
  let other: Lab;
  let image: string;

  beforeAll(async () => {
    const built = await buildEngineImage();
    image = `${REGISTRY}/${REPOSITORY}@${await pushImage(built.reference, `${REPOSITORY}:lab-test`)}`;
    lab = await createLab({ kind: 'nspawn' });
    other = await createLab({ kind: 'nspawn' });
  });

  afterAll(async () => {
    await lab?.down();
    await other?.down();
  });

  test('is a booted host without a failed unit, and its login has sudo', async () => {
    expect(await lab.ssh('systemctl is-system-running --wait')).toMatchObject({ stdout: 'running\n' });
    expect(await lab.ssh('id -un')).toMatchObject({ stdout: `${LAB_USER}\n` });
    expect(await lab.ssh('id -un', { root: true })).toMatchObject({ stdout: 'root\n' });
  });

  test('starts bare: no podman socket, no docker, no program of the product', async () => {
    expect((await lab.ssh('systemctl is-enabled podman.socket')).stdout).toBe('disabled\n');
    expect((await lab.ssh('command -v docker slot node python3')).stdout).toBe('');
  });

  test('passes standard input, standard error and a failure on', async () => {
    const result = await lab.ssh('cat; echo lost >&2; exit 7', { input: "two\nlines 'quoted' $HOME" });
    expect(result).toEqual({ exitCode: 7, stdout: "two\nlines 'quoted' $HOME", stderr: 'lost\n' });
  });

  test('refuses root, also with the right key', async () => {
    const target = { ...lab, port: lab.sshPort, user: 'root' };
    const refused = await execa('ssh', [...sshArguments(target), 'true'], { reject: false, stdin: 'ignore' });
    expect(refused.exitCode).toBe(255);
    expect(refused.stderr).toContain('Permission denied');
  });

  test('is not reached by who expects another host key', async () => {
    const target = { ...lab, port: lab.sshPort, hostKey: `ssh-ed25519 ${'A'.repeat(68)}` };
    const refused = await execa('ssh', [...sshArguments(target), 'true'], { reject: false, stdin: 'ignore' });
    expect(refused.stderr).toContain('Host key verification failed');
  });

  test('pulls by digest, and not while its registry is stopped', async () => {
    await lab.registry.stop();
    expect(await lab.registry.running()).toBe(false);
    const refused = await lab.ssh(`podman pull --retry 0 --quiet ${image}`, { root: true });
    expect(refused.stderr).toContain('connection refused');
    expect(refused.exitCode).not.toBe(0);

    await lab.registry.start();
    expect(await lab.ssh(`podman pull --quiet ${image}`, { root: true })).toMatchObject({ exitCode: 0 });
    expect(await lab.ssh(`podman image exists ${image}`, { root: true })).toMatchObject({ exitCode: 0 });
  });

  test('has the port of the engine for itself, beside another lab', async () => {
    for (const one of [lab, other]) await startServer(one, image);
    for (const one of [lab, other]) await waitUntilServed(one);
  });

  test('starts an enabled unit again after a reboot and after a power cut, and keeps what was synced', async () => {
    await startServer(lab, image);
    for (const [again, restart] of [lab.reboot, lab.cutPower].entries()) {
      await lab.ssh(`echo ${again} >/var/kept && sync`, { root: true });
      const before = await bootId(lab);
      await restart();
      expect(await bootId(lab)).not.toBe(before);
      await waitUntilServed(lab);
      expect((await lab.ssh('cat /var/kept')).stdout).toBe(`${again}\n`);
    }
    const transient = await lab.ssh('systemd-run --quiet --wait --pipe echo ran', { root: true });
    expect(transient.stdout).toBe('ran\n');
  });

  test('a power cut runs no handler of the host, a reboot does', async () => {
    const handler = `trap 'echo handled >/var/handled; sync; exit' TERM; sleep infinity & wait`;
    for (const [restart, handled] of [
      [lab.cutPower, ''],
      [lab.reboot, 'handled\n'],
    ] as const) {
      await lab.ssh(`systemd-run --quiet --unit=handler sh -c ${quoteForShell(handler)}`, { root: true });
      await expect.poll(async () => (await lab.ssh('pgrep -x sleep')).exitCode, { timeout: 5_000 }).toBe(0);
      await restart();
      expect((await lab.ssh('cat /var/handled')).stdout).toBe(handled);
    }
  });

  test('is found by another process, and not under a name that nobody took', async () => {
    const attached = await attachLab(lab.name);
    expect(await bootId(attached)).toBe(await bootId(lab));
    await expect(attachLab('nobody')).rejects.toThrow('no lab named "nobody"');
  });

  test('refuses a name that is taken, and one that is none', async () => {
    await expect(createLab({ kind: 'nspawn', name: lab.name })).rejects.toThrow(`"${lab.name}" exists`);
    await expect(createLab({ kind: 'nspawn', name: '../lab' })).rejects.toThrow('cannot name a lab');
    expect(await bootId(lab)).not.toBe('');
  });

  test('leaves nothing when it goes down', async () => {
    const gone = await createLab({ kind: 'nspawn' });
    const traces = await tracesOf(gone);
    expect(traces.length).toBeGreaterThan(0);
    await gone.down();
    expect(await tracesOf(gone)).toEqual([]);
    await gone.down();
  });

  test.each([
    ['interrupted', 'SIGINT'],
    ['terminated', 'SIGTERM'],
  ] as const)('goes down with the process that made it: %s', async (_, signal) => {
    const { owner, name, ended } = await labOfAnotherProcess();
    const traces = await tracesOf(await attachLab(name));
    expect(traces.length).toBeGreaterThan(0);
    owner.kill(signal);
    expect(await ended).toBe(signal);
    expect((await listLabs()).map((entry) => entry.name)).not.toContain(name);
  });

  test('whose process was killed is removed by the next one that is made', async () => {
    const { owner, name, ended } = await labOfAnotherProcess();
    const left = await attachLab(name);
    owner.kill('SIGKILL');
    await ended;
    expect(await listLabs()).toContainEqual({ name, kind: 'nspawn', ownerPid: undefined, stale: true });
    expect((await tracesOf(left)).length).toBeGreaterThan(0);

    const next = await createLab({ kind: 'nspawn', name: `after-${name}` });
    try {
      expect((await listLabs()).map((entry) => entry.name)).not.toContain(name);
    } finally {
      await next.down();
    }
    expect(await tracesOf(left)).toEqual([]);
  });
});

test('an image that is not there is refused with its name', async () => {
  await expect(pushImage('oci:/nowhere:lab', 'tcclaviger/vllm:lab-test')).rejects.toThrow(
    'could not copy oci:/nowhere:lab',
  );
});

test('a registry for an address that is not this machine’s is refused', async () => {
  await expect(registryAt('192.0.2.1').start()).rejects.toThrow('cannot assign requested address');
});

async function startServer(lab: Lab, image: string): Promise<void> {
  const serve = `import http.server as s; s.BaseHTTPRequestHandler.do_GET = lambda h: (h.send_response(200), h.end_headers(), h.wfile.write(b'${lab.name}')); s.HTTPServer(('', 7770), s.BaseHTTPRequestHandler).serve_forever()`;
  const unit = `[Service]
Type=notify
NotifyAccess=all
Delegate=yes
KillSignal=SIGKILL
ExecStart=/usr/bin/podman run -d --name served --cgroups=split --sdnotify=conmon --replace --rm --ulimit=host --network=host --entrypoint=python3 ${image} -c "${serve}"

[Install]
WantedBy=multi-user.target
`;
  await lab.ssh(`podman pull --quiet ${image}`, { root: true });
  const started = await lab.ssh(
    'cat >/etc/systemd/system/served.service && systemctl daemon-reload && systemctl enable --now served',
    { root: true, input: unit },
  );
  expect(started).toMatchObject({ exitCode: 0 });
}

async function waitUntilServed(lab: Lab): Promise<void> {
  await expect
    .poll(() => fetch(lab.engineUrl).then((response) => response.text(), String), { timeout: 30_000 })
    .toBe(lab.name);
}

async function bootId(lab: Lab): Promise<string> {
  return (await lab.ssh('cat /proc/sys/kernel/random/boot_id')).stdout;
}

/** What on this machine belongs to the lab: its network, its folder, processes that name the folder. */
async function tracesOf(lab: Lab): Promise<string[]> {
  const routes = (await execa('ip', ['route', 'show', 'to', 'match', lab.address])).stdout.split('\n');
  const folder = join(labCache(), 'nspawn', lab.name);
  const commands: string[] = [];
  for (const pid of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.split('\0').some((word) => word === folder || word.startsWith(`${folder}/`)))
      commands.push(command);
  }
  const registries = await registryAt(hostSideOf(lab.address)).running();
  return [
    ...routes.filter((route) => route.includes('slotlab')),
    ...(existsSync(folder) ? [folder] : []),
    ...commands,
    ...(registries ? ['registry'] : []),
  ];
}

async function labOfAnotherProcess() {
  const program = `
    import { createLab } from ${JSON.stringify(join(import.meta.dirname, '../../lab/lab.ts'))};
    const lab = await createLab({ kind: 'nspawn' });
    console.log(lab.name);
    setInterval(() => {}, 1000);
  `;
  const owner = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<NodeJS.Signals | null>((resolve) =>
    owner.once('exit', (_, signal) => resolve(signal)),
  );
  const name = await new Promise<string>((resolve) =>
    owner.stdout.once('data', (data: Buffer) => resolve(data.toString().trim())),
  );
  return { owner, name, ended };
}
