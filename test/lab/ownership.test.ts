import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { debianMirror } from '../../lab/debian.ts';
import { withLock } from '../../lab/lock.ts';
import { identifyProcess, isAlive } from '../../lab/process.ts';

const lab = join(import.meta.dirname, '../../lab');

describe('a lock', () => {
  test('lets one at a time in, also when the work fails', async () => {
    let inside = 0;
    const work = () =>
      withLock('test', async () => {
        expect(++inside).toBe(1);
        await new Promise((resolve) => setImmediate(resolve));
        inside--;
        throw new Error('failed inside');
      });
    const outcomes = await Promise.allSettled([work(), work(), work()]);
    expect(outcomes.map((outcome) => outcome.status === 'rejected' && String(outcome.reason))).toEqual(
      Array(3).fill('Error: failed inside'),
    );
  });

  test('is free again when the process that held it was killed', async () => {
    const program = `
      import { withLock } from ${JSON.stringify(join(lab, 'lock.ts'))};
      await withLock('test', () => { console.log('held'); return new Promise((done) => setTimeout(done, 60_000)); });
    `;
    const holder = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(holder.stdout, 'data');
    let entered = false;
    const entering = withLock('test', async () => {
      entered = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(entered).toBe(false);
    holder.kill('SIGKILL');
    await entering;
    expect(entered).toBe(true);
  });
});

describe('a process identity', () => {
  test('is not that of a process that ended', async () => {
    const child = spawn('sleep', ['60']);
    const identity = identifyProcess(child.pid ?? 0);
    expect(isAlive(identity)).toBe(true);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(isAlive(identity)).toBe(false);
  });

  test('is not that of a later process with the same number', () => {
    const { pid, startTime } = identifyProcess(process.pid);
    expect(isAlive({ pid, startTime: startTime - 1 })).toBe(false);
  });

  test('is not given for a number without a process', () => {
    expect(() => identifyProcess(2 ** 22 + 1)).toThrow('no process has the number 4194305');
  });
});

describe('the Debian archive', () => {
  afterEach(() => vi.unstubAllEnvs());

  test('is asked for where apt names none', async () => {
    vi.stubEnv('SLOT_LAB_DEBIAN_MIRROR', '');
    vi.stubEnv('PATH', '/nonexistent');
    await expect(debianMirror()).rejects.toThrow('set SLOT_LAB_DEBIAN_MIRROR');
  });

  test('is the one that the operator names', async () => {
    vi.stubEnv('SLOT_LAB_DEBIAN_MIRROR', 'http://mirror.test/debian');
    expect(await debianMirror()).toBe('http://mirror.test/debian');
  });
});

describe('the lab command', () => {
  test.each([
    [['fly'], 2, 'fly: no such command'],
    [[], 2, 'usage: npm run lab'],
    [['up', '--kind', 'docker'], 1, '--kind docker: there are nspawn and vm'],
    [['down', 'lab-7'], 1, 'lab-7: not understood'],
    [['down', '--everything'], 1, '--everything'],
    [['ssh', '--name', 'nobody'], 1, 'no lab named "nobody": npm run lab up -- --name nobody'],
  ])('%j exits %i and says what is wrong', async (words, exitCode, message) => {
    const result = await execa(process.execPath, [join(lab, 'main.ts'), ...words], { reject: false });
    expect(result).toMatchObject({ exitCode, stderr: expect.stringContaining(message) });
  });
});
