import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { rootKey } from '../../../../agent/hashing/hash-memo.ts';
import { sealFindings, sealTree, verifyTree } from '../../../../agent/hashing/sealed-payload.ts';
import { realOutside } from '../../../../agent/outside.ts';
import { manifestText, type PayloadManifest } from '../../../../shape/payload-manifest.ts';
import type { SealedTree } from '../../../../shape/payload-request.ts';
import { planned } from '../../shape/rules/rule-cases.ts';
import { HashingHost, inThisThread, Killed, service } from './hashing-host.ts';

let host: HashingHost;
let root: string;

beforeEach(async () => {
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  host = new HashingHost();
  root = host.payload;
  write('config.json', '{}');
  write('model-00001-of-00002.safetensors', 'a'.repeat(300_000));
  write('model-00002-of-00002.safetensors', 'b'.repeat(200_000));
  mkdirSync(join(root, 'tokenizer'));
  write('tokenizer/vocab.txt', 'words');
  await tick();
});

afterEach(() => {
  vi.restoreAllMocks();
  host.close();
});

const at = (name: string) => join(root, name);
const write = (name: string, content: string) => writeFileSync(at(name), content);
const sha256 = (content: string) => createHash('sha256').update(content).digest('hex');
const seal = (more: Partial<SealedTree> = {}) => sealTree(host.context, { root, ...more });
const verify = (manifest: PayloadManifest, more: Partial<SealedTree> = {}) =>
  verifyTree(host.context, { root, manifest, ...more });
/** The kernel's clock goes on, at 100 Hz or more. */
const tick = () => sleep(11);
const rewrite = async (name: string, content: string) => {
  await tick();
  write(name, content);
};

describe('a seal', () => {
  it('has every file with its size and hash, as sha256sum has them', async () => {
    const manifest = await seal();
    expect(manifest.map(({ name, size }) => [name, size])).toEqual([
      ['config.json', 2],
      ['model-00001-of-00002.safetensors', 300_000],
      ['model-00002-of-00002.safetensors', 200_000],
      ['tokenizer/vocab.txt', 5],
    ]);
    const file = join(host.folder, 'manifest');
    writeFileSync(file, manifestText(manifest));
    execFileSync('sha256sum', ['--check', '--strict', '--quiet', file], { cwd: root });
  });

  it('is the same whatever the order on disk, and without what tools keep there', async () => {
    const manifest = await seal();
    mkdirSync(at('.cache'));
    write('.cache/lock', String(Math.random()));
    write('.gitattributes', 'x');
    expect(await seal()).toEqual(manifest);
  });

  it('reads the large files first', async () => {
    await seal();
    expect(host.read.slice(0, 2)).toEqual([
      'model-00001-of-00002.safetensors',
      'model-00002-of-00002.safetensors',
    ]);
  });

  it('of a single file that is mounted has it by its name', async () => {
    const manifest = await sealTree(host.context, { root: at('config.json') });
    expect(manifest).toEqual([{ name: 'config.json', size: 2, sha256: sha256('{}') }]);
  });

  it.each([
    ['an absent folder', () => rmSync(root, { recursive: true }), /payload is not there/],
    [
      'an empty folder',
      () => {
        rmSync(root, { recursive: true });
        mkdirSync(root);
      },
      /has no files/,
    ],
    ['a pipe', () => execFileSync('mkfifo', [at('model.fifo')]), /model\.fifo is neither file nor folder/],
    [
      'a link to nothing',
      () => symlinkSync('../blobs/x', at('gone')),
      /gone is a link to \.\.\/blobs\/x, where/,
    ],
    ['links that go round', () => symlinkSync('.', at('round')), /round is a link to a folder/],
    ['a name that no line holds', () => write('a\nb', 'x'), /must be a path below the folder/],
  ])('of %s is refused by name', async (_what, damage, message) => {
    damage();
    await expect(seal()).rejects.toThrow(message);
    expect(host.units).toEqual([]);
  });

  it('of a folder that may not be read is refused by name', async () => {
    host.faults = {
      list: async (path) => {
        throw new Error(`EACCES: permission denied, scandir '${path}'`);
      },
    };
    await expect(seal()).rejects.toThrow(/payload cannot be looked at: EACCES: permission denied/);
  });

  it('has what a link leads to, and sees when that is replaced', async () => {
    const blob = join(host.folder, 'blob');
    writeFileSync(blob, 'first');
    symlinkSync(blob, at('linked'));
    const manifest = await seal();
    expect(manifest.find(({ name }) => name === 'linked')).toMatchObject({ sha256: sha256('first') });
    await tick();
    writeFileSync(blob, 'other');
    await expect(verify(manifest)).rejects.toThrow(`linked has sha256 ${sha256('other')}`);
  });

  it('that contradicts the record is refused', async () => {
    const expected = {
      files: { 'config.json': { sha256: 'b038e1d9' }, 'draft.safetensors': { sha256: '0'.repeat(8) } },
    };
    const refusal = seal({ expected });
    await expect(refusal).rejects.toThrow(
      `config.json has sha256 ${sha256('{}')} there, on record is b038e1d9`,
    );
    await expect(refusal).rejects.toThrow('draft.safetensors is missing');
  });
});

describe('a seal during which somebody writes', () => {
  const first = 'model-00001-of-00002.safetensors';

  it.each([
    ['changed', () => write(first, 'z'.repeat(300_000)), `${first} was changed meanwhile`],
    ['taken away', () => rmSync(at(first), { force: true }), `${first} was taken away meanwhile`],
    ['added', () => write('late.txt', 'x'), 'late.txt was added meanwhile'],
  ])('is refused: a file was %s', async (_what, disturb, message) => {
    const say = async () => disturb();
    // Its own reading would see what happens to a file; of this one the hub gives the hash.
    const hub = [{ name: first, sha256: sha256('a'.repeat(300_000)) }];
    await expect(sealTree({ ...host.context, say }, { root, hub })).rejects.toThrow(message);
  });
});

describe('a preview of a release that asks for hashes', () => {
  const release = (manifest: PayloadManifest) => {
    const glm = planned('glm-w4a16');
    return { ...glm, payload: { ...glm.payload, folder: root, verify: 'hashes' as const, manifest } };
  };
  const found = (manifest: PayloadManifest) => sealFindings(host.context.outside, service, release(manifest));

  it('promises no cutover where a file was found to have other bytes than sealed', async () => {
    const manifest = await seal();
    await rewrite('config.json', '[]');
    expect(await found(manifest)).toMatchObject([{ severity: 'note' }]);
    await tick();
    await expect(verify(manifest)).rejects.toThrow('config.json has sha256');
    expect(await found(manifest)).toMatchObject([
      { severity: 'refuse', message: expect.stringContaining('when they were read last: config.json') },
    ]);
  });
});

describe('a seal with what a hub says', () => {
  const shard = 'model-00001-of-00002.safetensors';

  it('takes its hashes without a look at the bytes', async () => {
    const manifest = await seal({ hub: [{ name: shard, sha256: 'f'.repeat(64), size: 300_000 }] });
    expect(manifest.find(({ name }) => name === shard)?.sha256).toBe('f'.repeat(64));
    expect(host.read).not.toContain(shard);
    await expect(verify(manifest)).rejects.toThrow(
      `${shard} has sha256 ${sha256('a'.repeat(300_000))}, expected ${'f'.repeat(64)}`,
    );
  });

  it('knows a file by its hash in git', async () => {
    const gitBlob = execFileSync('git', ['hash-object', at('config.json')], { encoding: 'utf8' }).trim();
    await seal({ hub: [{ name: 'config.json', gitBlob }] });
    write('config.json', '[]');
    await expect(seal({ hub: [{ name: 'config.json', gitBlob }] })).rejects.toThrow(
      /config\.json is not the hub's: as a blob of git it is [0-9a-f]{40}/,
    );
  });

  it('misses a weight that is not there, and no page of the hub', async () => {
    await seal({
      hub: [
        { name: 'README.md', gitBlob: '0'.repeat(40) },
        { name: '.x', sha256: '0'.repeat(64) },
      ],
    });
    await expect(seal({ hub: [{ name: 'more.safetensors', sha256: '0'.repeat(64) }] })).rejects.toThrow(
      'more.safetensors is missing',
    );
  });

  it('tells a cut file by its size', async () => {
    const hub = [{ name: shard, sha256: 'f'.repeat(64), size: 300_004 }];
    await expect(seal({ hub })).rejects.toThrow(
      `${shard} has 300000 bytes, expected 300004: 4 bytes missing`,
    );
  });
});

describe('a payload that is not as sealed', () => {
  it.each([
    [
      'too small',
      () => truncateSync(at('config.json'), 1),
      'config.json has 1 bytes, expected 2: 1 byte missing',
    ],
    ['too large', () => write('config.json', '{}\n'), 'config.json has 3 bytes, expected 2: 1 byte too many'],
    ['missing', () => rmSync(at('config.json')), 'config.json is missing'],
    ['extra', () => write('other.safetensors', 'x'), 'other.safetensors is not in the manifest'],
  ])('is told by name before any byte is read: %s', async (_what, damage, message) => {
    const manifest = await seal();
    host.read.length = 0;
    damage();
    await expect(verify(manifest)).rejects.toThrow(message);
    expect(host.read).toEqual([]);
  });

  it('names all that is wrong at once', async () => {
    const manifest = await seal();
    rmSync(at('config.json'));
    write('extra', 'x');
    await expect(verify(manifest)).rejects.toThrow(
      /config\.json is missing\n {2}extra is not in the manifest/,
    );
  });

  it('is told with the file, what is expected and what is found', async () => {
    const manifest = await seal();
    await rewrite('config.json', '[]');
    await expect(verify(manifest)).rejects.toThrow(
      `config.json has sha256 ${sha256('[]')}, expected ${sha256('{}')}`,
    );
    expect(host.said).toContain('config.json is another file than expected');
  });

  it('is found though size and modification time are those of before', async () => {
    const manifest = await seal();
    const { atime, mtime } = statSync(at('config.json'));
    write('elsewhere', '[]');
    renameSync(at('elsewhere'), at('config.json'));
    utimesSync(at('config.json'), atime, mtime);
    expect(statSync(at('config.json')).mtimeMs).toBe(mtime.getTime());
    await expect(verify(manifest)).rejects.toThrow('config.json has sha256');
  });

  it('is found though the same inode was written to and its time was set back', async () => {
    const manifest = await seal();
    const { atime, mtime } = statSync(at('config.json'));
    write('config.json', '[]');
    utimesSync(at('config.json'), atime, mtime);
    await expect(verify(manifest)).rejects.toThrow('config.json has sha256');
  });

  it('is told where the record says another hash than the manifest', async () => {
    const manifest = await seal();
    const expected = { files: { 'config.json': { sha256: 'b038e1d9' } } };
    await expect(verify(manifest, { expected })).rejects.toThrow(
      `config.json has sha256 ${sha256('{}')} sealed, on record is b038e1d9`,
    );
  });
});

describe('what is on record alone', () => {
  const expected = { files: { 'config.json': { bytes: 2, sha256: sha256('{}').slice(0, 8) } } };

  it('is verified without a manifest, and the other files are not read', async () => {
    expect(await verifyTree(host.context, { root, expected })).toContain('1 file, 2 B, hashes as on record');
    expect(host.read).toEqual(['config.json']);
  });

  it('is refused where another file lies there', async () => {
    await rewrite('config.json', '[]');
    await expect(verifyTree(host.context, { root, expected })).rejects.toThrow(
      `config.json has sha256 ${sha256('[]')}, expected ${sha256('{}').slice(0, 8)}`,
    );
  });

  it('is not made up', async () => {
    await expect(verifyTree(host.context, { root })).rejects.toThrow('nothing says what its files hash to');
  });
});

describe('what was read', () => {
  it('is not read again, nor is a unit started', async () => {
    const manifest = await seal();
    host.read.length = 0;
    expect(await verify(manifest)).toMatch(/4 files, 488\.29 KiB, hashes as sealed, manifest [0-9a-f]{12}$/);
    expect(host.read).toEqual([]);
    expect(host.units).toHaveLength(1);
  });

  it('is read again where it was touched, and that alone', async () => {
    const manifest = await seal();
    host.read.length = 0;
    await tick();
    chmodSync(at('config.json'), 0o600);
    await verify(manifest);
    expect(host.read).toEqual(['config.json']);
  });

  it('is read again where the memo is damaged', async () => {
    const manifest = await seal();
    const memo = join(host.folder, `var/lib/slot/${service}/hashes/${rootKey(root)}.json`);
    for (const damage of ['', '{"version":1', readFileSync(memo, 'utf8').slice(0, -20), '\0'.repeat(500)]) {
      host.read.length = 0;
      writeFileSync(memo, damage);
      await verify(manifest);
      expect(host.read).toHaveLength(4);
    }
  });

  it('is read again before a remembered hash is held against it', async () => {
    const manifest = await seal();
    const memo = join(host.folder, `var/lib/slot/${service}/hashes/${rootKey(root)}.json`);
    writeFileSync(memo, readFileSync(memo, 'utf8').replace(sha256('{}'), 'f'.repeat(64)));
    host.read.length = 0;
    await verify(manifest);
    expect(host.read).toEqual(['config.json']);
  });

  it('is not remembered where it could have changed within the same tick of the clock', async () => {
    host.faults = { now: () => new Date() };
    await rewrite('config.json', '[]');
    const manifest = await seal();
    host.read.length = 0;
    await verify(manifest);
    expect(host.read).toContain('config.json');
  });

  it('before a kill is not read again after it', async () => {
    let clock = 0;
    host.faults = {
      monotonicSeconds: () => clock,
      sleep: async (seconds) => {
        await realOutside.sleep(0.001);
        clock += seconds;
      },
      // After two files it stands still; then it is killed.
      hashFiles: (paths, onEnd) => {
        inThisThread(paths.slice(0, 2), onEnd);
        const death = new Promise<never>((_, reject) => setTimeout(() => reject(new Killed()), 100));
        return { ended: death, bytesRead: () => 1, current: () => [] };
      },
    };
    await expect(seal()).rejects.toThrow(/was stopped or killed before its end .* the same command goes on/);
    host.faults = {};
    host.read.length = 0;
    expect(await seal()).toHaveLength(4);
    expect(host.read).toEqual(['tokenizer/vocab.txt', 'config.json']);
  });
});

describe('a reading', () => {
  it('runs in a unit that leaves the engine its disk, its cores and its page cache, and writes nothing elsewhere', async () => {
    await seal();
    const [unit = []] = host.units;
    for (const property of ['Nice=19', 'IOSchedulingClass=idle', 'MemoryHigh=2G', 'ProtectSystem=strict'])
      expect(unit).toContain(`--property=${property}`);
    expect(unit).toContain(`--unit=${service}-hashing-${rootKey(root)}.service`);
  });

  it('is there once: who comes second follows the first and reads nothing', async () => {
    const [one, other] = await Promise.all([seal(), seal()]);
    expect(one).toEqual(other);
    expect(host.units).toHaveLength(1);
    expect(host.read).toHaveLength(4);
    expect(host.said.join('\n')).toContain('is being read already');
  });

  it('leaves nothing behind but what is remembered', async () => {
    await seal();
    expect(host.stateFiles(`run/slot/${service}`)).toEqual([]);
    expect(host.stateFiles(`var/lib/slot/${service}/hashes`)).toEqual([`${rootKey(root)}.json`]);
  });

  it('tells what is left, at what rate and of which file, at least every 30 s', async () => {
    let clock = 0;
    const waiting: (() => void)[] = [];
    let bytes = 0;
    host.faults = {
      monotonicSeconds: () => clock,
      sleep: async (seconds) => {
        if (seconds < 0.5) return realOutside.sleep(0.001);
        clock += 5;
        bytes += 50_000;
        if (clock > 60) for (const end of waiting) end();
      },
      hashFiles: (paths, onEnd) => ({
        ended: new Promise((resolve) => {
          waiting.push(() => {
            for (const path of paths) onEnd(path, { sha256: 'f'.repeat(64) });
            resolve();
          });
        }),
        bytesRead: () => bytes,
        current: () => paths.slice(0, 2),
      }),
    };
    await seal();
    const lines = host.said.filter((line) => line.includes('/s, about'));
    expect(lines.length).toBeGreaterThanOrEqual(3);
    expect(lines[0]).toMatch(
      /^[\d.]+ KiB of 488\.29 KiB, [\d.]+ KiB\/s, about \d+ s left; model-00001-of-00002\.safetensors and 1 more$/,
    );
  });

  it('of a disk that answers no more is given up, with the file', async () => {
    let clock = 0;
    host.faults = {
      monotonicSeconds: () => clock,
      sleep: async (seconds) => {
        if (seconds < 0.5) return realOutside.sleep(0.001);
        clock += 20;
      },
      hashFiles: () => ({
        ended: new Promise(() => {}),
        bytesRead: () => 0,
        current: () => [at('config.json')],
      }),
    };
    await expect(seal()).rejects.toThrow('config.json: gave no byte for 300 s');
    expect(host.said.join('\n')).toContain('no byte for');
  });

  it('goes on with the other files where one cannot be read, and says which', async () => {
    host.faults = {
      hashFiles: (paths, onEnd) =>
        inThisThread(paths, (path, result) =>
          onEnd(path, path.endsWith('config.json') ? { error: 'EIO: i/o error, read' } : result),
        ),
    };
    await expect(seal()).rejects.toThrow('config.json: EIO: i/o error, read');
    host.faults = {};
    host.read.length = 0;
    await seal();
    expect(host.read).toEqual(['config.json']);
  });

  it.each([
    ['is taken away', () => rmSync(at('config.json')), 'config.json: was taken away while it was read'],
    ['is changed', () => write('config.json', '[1]'), 'config.json: was changed while it was read'],
  ])('of a file that %s meanwhile is not believed', async (_what, change, message) => {
    host.faults = {
      hashFiles: (paths, onEnd) => {
        return inThisThread(paths, (path, result) => {
          if (path.endsWith('config.json')) change();
          onEnd(path, result);
        });
      },
    };
    await expect(seal()).rejects.toThrow(message);
  });

  it('on a full disk still answers, and says that it will be read again', async () => {
    const { makeFolder } = host.outside;
    host.faults = {
      makeFolder: async (path) => {
        if (path.startsWith('/var/lib/')) throw new Error('ENOSPC: no space left on device');
        return makeFolder(path);
      },
    };
    expect(await seal()).toHaveLength(4);
    expect(host.said.join('\n')).toContain('not remembered, to be read again: ENOSPC');
  });
});
