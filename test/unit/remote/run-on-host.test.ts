import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { runOnHost, type SshTarget } from '../../../remote/ssh.ts';

/** Runs the command here and keeps the log that ssh would keep. */
const standIn = `#!/bin/sh
while [ $# -gt 1 ]; do [ "$1" = -E ] && log=$2; shift; done
echo 'Authenticated to stand-in' >"$log"
sh -c "$1"
code=$?
echo "debug1: Exit status $code" >>"$log"
exit $code
`;

const target: SshTarget = {
  address: '192.0.2.7',
  sshPort: 22,
  user: 'dank',
  hostKey: 'ssh-ed25519 AAAA',
  privateKeyPath: undefined,
};

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'slot-test-'));
  mkdirSync(join(folder, 'bin'));
  mkdirSync(join(folder, 'tmp'));
  writeFileSync(join(folder, 'bin', 'ssh'), standIn);
  chmodSync(join(folder, 'bin', 'ssh'), 0o755);
});

afterAll(() => rmSync(folder, { recursive: true }));

beforeEach(() => {
  vi.stubEnv('PATH', `${join(folder, 'bin')}:${process.env.PATH}`);
  vi.stubEnv('TMPDIR', join(folder, 'tmp'));
});

afterEach(() => {
  vi.unstubAllEnvs();
  expect(readdirSync(join(folder, 'tmp')), 'files of the connection that were left').toEqual([]);
});

describe('a command on the host', () => {
  it('gives both outputs as they came, and its exit code', async () => {
    expect(await runOnHost(target, 'echo out; echo err >&2; exit 3')).toEqual({
      exitCode: 3,
      stdout: 'out\n',
      stderr: 'err\n',
    });
  });

  it('may end with the code that ssh itself fails with', async () => {
    expect((await runOnHost(target, 'exit 255')).exitCode).toBe(255);
  });

  it('reads its input', async () => {
    const input = 'ä\n'.repeat(100_000);
    expect((await runOnHost(target, 'cat', { input })).stdout).toBe(input);
  });

  it('does not wait for input where none is given', async () => {
    expect((await runOnHost(target, 'cat', { timeoutSeconds: 5 })).stdout).toBe('');
  });

  it('need not read its input', async () => {
    const input = 'x'.repeat(1_000_000);
    expect((await runOnHost(target, 'exec <&-; echo done', { input })).stdout).toBe('done\n');
  });
});

describe('no end of a command', () => {
  it('within the time limit is told as such: it may go on', async () => {
    const late = runOnHost(target, 'exec sleep 2', { timeoutSeconds: 0.3 });
    await expect(late).rejects.toMatchObject({
      kind: 'lost',
      message: 'dank@192.0.2.7:22: the command did not end within 0.3 s',
    });
  });

  it('because ssh was killed is told as such', async () => {
    await expect(runOnHost(target, 'kill -KILL $PPID')).rejects.toMatchObject({ kind: 'lost' });
  });

  it('because it prints without an end is told as such', async () => {
    await expect(runOnHost(target, 'exec yes')).rejects.toMatchObject({
      kind: 'lost',
      message: expect.stringContaining('more than 67108864 bytes'),
    });
  });
});

describe('without an ssh on this machine', () => {
  it('the host is called unreachable, with the reason', async () => {
    vi.stubEnv('PATH', join(folder, 'tmp'));
    await expect(runOnHost(target, 'true')).rejects.toMatchObject({
      kind: 'unreachable',
      message: expect.stringContaining('ENOENT'),
    });
  });
});
