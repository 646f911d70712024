import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { askAtMostDaily, fillOnce, Refused } from '../../../toolchain/cache.ts';

let cache: string;
beforeEach(() => {
  cache = mkdtempSync(path.join(tmpdir(), 'cache-'));
});
afterEach(() => rmSync(cache, { recursive: true, force: true }));

describe('filling a folder', () => {
  const folder = () => path.join(cache, 'part');
  const write = async (partial: string) => writeFileSync(path.join(partial, 'file'), 'whole');

  it('happens once, even for two who want it at the same time', async () => {
    let times = 0;
    const slowly = async (partial: string) => {
      times += 1;
      await sleep(50);
      await write(partial);
    };
    const told: string[] = [];
    await Promise.all([1, 2].map(() => fillOnce(folder(), slowly, (line) => told.push(line))));
    expect(times).toBe(1);
    expect(told).toEqual([`waiting for process ${process.pid}, which prepares part already`]);
    expect(readFileSync(path.join(folder(), 'file'), 'utf8')).toBe('whole');
  });

  it('leaves nothing after a failure, so that the next one fills it', async () => {
    const failing = async (partial: string) => {
      await write(partial);
      throw new Error('no space left');
    };
    await expect(fillOnce(folder(), failing, () => {})).rejects.toThrow('no space left');
    expect(readdirSync(cache)).toEqual([]);
    await fillOnce(folder(), write, () => {});
    expect(readdirSync(cache)).toEqual(['part']);
  });

  it.each([
    ['of a process that is gone', { pid: 2 ** 22 + 1, started: '1' }],
    ['whose number another process has by now', { pid: process.pid, started: 'earlier' }],
  ])('does not wait for a lock %s, nor keep what it left behind', async (_, owner) => {
    writeFileSync(`${folder()}.lock`, JSON.stringify(owner));
    writeFileSync(`${folder()}.partial-old`, 'half');
    await fillOnce(folder(), write, () => {});
    expect(readdirSync(cache)).toEqual(['part']);
  });
});

describe('asking at most daily', () => {
  const note = () => path.join(cache, 'refused');
  const refuse = async () => {
    throw new Refused('no such host');
  };

  it('does not ask again on the same day, and says how to', async () => {
    await expect(askAtMostDaily(note(), refuse)).rejects.toThrow(/^no such host$/);
    const again = askAtMostDaily(note(), async () => 'asked');
    await expect(again).rejects.toThrow(`no such host (asked on`);
    await expect(again).rejects.toThrow(`rm ${note()}`);
    await expect(again).rejects.toBeInstanceOf(Refused);
  });

  it('asks again a day later', async () => {
    await expect(askAtMostDaily(note(), refuse)).rejects.toThrow();
    const yesterday = Date.now() / 1000 - 24 * 60 * 60 - 1;
    utimesSync(note(), yesterday, yesterday);
    expect(await askAtMostDaily(note(), async () => 'given')).toBe('given');
  });

  it('does not remember a failure that is no refusal', async () => {
    const failing = askAtMostDaily(note(), async () => {
      throw new Error('a defect');
    });
    await expect(failing).rejects.toThrow('a defect');
    expect(readdirSync(cache)).toEqual([]);
  });
});
