import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, it, onTestFinished } from 'vitest';

const check = readFileSync(new URL('../../../components/host-scripts/check.sh', import.meta.url), 'utf8');

/**
 * Stand-ins for the programs that a host which is fit for an engine has, as what they print. The only files
 * that the script writes or removes lie below HOME, a temporary folder: `mktemp` sees to that.
 */
const fitHost: Readonly<Record<string, string>> = {
  uname: 'echo x86_64',
  getconf: 'echo glibc 2.41',
  stat: 'echo cgroup2fs',
  systemctl: 'case $1 in --version) echo "systemd 257 (257.9)" ;; *) echo running ;; esac',
  'systemd-analyze': 'echo /etc/systemd/system; echo /usr/local/lib/systemd/system',
  'systemd-run': 'exit 0',
  findmnt: 'echo /',
  readlink: 'echo "$2"',
  df: 'printf "h\\n/dev/sda1 9 9 90000000 9%% /\\n"',
  podman: 'case $1 in --version) echo podman version 5.4.2 ;; *) echo /var/lib/containers/storage ;; esac',
  // A sudo that cannot resolve its own host's name says so on every call.
  sudo: 'echo "sudo: unable to resolve host" >&2; [ "$1" = -n ] && shift; exec "$@"',
  id: 'echo 1000',
  curl: '',
  patch: '',
  ss: '',
  journalctl: '',
  mktemp: 'mktemp=$(PATH=/usr/bin:/bin command -v mktemp); exec "$mktemp" "$HOME/probe-XXXXXX"',
};

describe.runIf(process.platform === 'linux')('what a host must have', () => {
  async function checkHost(changes: Readonly<Record<string, string>> = {}) {
    const home = mkdtempSync(join(tmpdir(), 'slot-check-'));
    onTestFinished(() => rmSync(home, { recursive: true, force: true }));
    const programs = join(home, 'programs');
    mkdirSync(programs);
    for (const [name, text] of Object.entries({ ...fitHost, ...changes })) {
      writeFileSync(join(programs, name), `#!/bin/sh\n${text}\n`);
      chmodSync(join(programs, name), 0o755);
    }
    const assignments = [
      'host=dankserver',
      'login=dank',
      'slot_program=/usr/local/libexec/slot/slot',
      `docker_shim=${home}/shim/docker`,
      'staging=.cache/slot',
      'needed_mib=400',
    ];
    return execa('sh', ['-s'], {
      input: `${assignments.join('\n')}\n${check}`,
      env: { PATH: `${programs}:${home}/shim:/usr/bin:/bin`, HOME: home },
      extendEnv: false,
      reject: false,
    });
  }

  it('is found on a host that has it, with the versions that are told', async () => {
    const { exitCode, stdout, stderr } = await checkHost();
    expect(stderr).not.toContain('dankserver:');
    expect(exitCode).toBe(0);
    expect(stdout.split('\n')).toContain('podman=5.4.2');
    expect(stdout.split('\n')).toContain('store=/var/lib/containers/storage');
  });

  it.each([
    ['another architecture', { uname: 'echo aarch64' }, /architecture: is aarch64/],
    ['musl', { getconf: 'exit 1' }, /C library: is not glibc/],
    ['an old glibc', { getconf: 'echo glibc 2.17' }, /C library: is glibc 2\.17/],
    ['cgroup v1', { stat: 'echo tmpfs' }, /cgroups: .*tmpfs, not cgroup v2/],
    ['an old systemd', { systemctl: 'echo "systemd 239 (239)"' }, /systemd: is 239, 250 or newer/],
    [
      'a systemd without the unit path',
      { 'systemd-analyze': 'echo /etc/systemd/system' },
      /does not read \/usr\/local\/lib/,
    ],
    ['/usr/local on an image-based system', { readlink: 'echo /var/usrlocal' }, /leads to \/var\/usrlocal/],
    [
      '/usr/local on a mount of its own',
      { findmnt: 'echo /usr/local' },
      /mounted after systemd has read its units/,
    ],
    ['no space', { df: 'printf "h\\n/dev/sda1 9 9 1024 9%% /\\n"' }, /has 1 MiB left, 400 MiB are needed/],
    ['a clock before this program', { date: 'echo 1000' }, /clock: says/],
    ['an old podman', { podman: 'echo podman version 3.4.4' }, /podman: is 3\.4\.4, 4\.3 or newer/],
    [
      'a podman that fails',
      { podman: 'case $1 in --version) echo podman version 5.4.2 ;; *) echo no store >&2; exit 125 ;; esac' },
      /'podman info' fails for root: no store/,
    ],
    [
      'sudo that asks',
      { sudo: 'echo "sudo: a password is required" >&2; exit 1' },
      /'sudo -n true' was refused \(a password is required\)/,
    ],
    [
      'sudo for some commands only',
      { sudo: 'case $2 in true) exit 0 ;; esac; echo "sudo: a password is required" >&2; exit 1' },
      /'sudo -n sh -c true' was refused/,
    ],
    [
      'no transient units',
      { 'systemd-run': 'echo Access denied >&2; exit 1' },
      /systemd-run: cannot run a transient unit: Access denied/,
    ],
    ['a /usr/local where nothing runs', { chmod: 'exit 0' }, /nothing can be executed there/],
    [
      'a read-only /usr/local',
      { mktemp: 'echo Read-only file system >&2; exit 1' },
      /cannot be written by root/,
    ],
    ['another docker', { docker: 'echo Docker version 29.0' }, /is another docker/],
  ])('is refused by name: %s', async (_name, changes, message) => {
    const { exitCode, stdout, stderr } = await checkHost(changes);
    expect(stderr).toMatch(message);
    expect(exitCode).toBe(1);
    expect(stdout).toBe('');
  });

  it('is told all at once', async () => {
    const { stderr } = await checkHost({
      getconf: 'exit 1',
      stat: 'echo tmpfs',
      podman: 'echo podman version 3.4.4',
    });
    expect(stderr).toContain('3 reason(s)');
  });

  it('takes podman’s own docker for no other docker', async () => {
    expect((await checkHost({ docker: 'echo podman version 5.4.2' })).exitCode).toBe(0);
  });
});
