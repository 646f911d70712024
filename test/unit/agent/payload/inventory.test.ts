import { execFileSync } from 'node:child_process';
import { appendFileSync, readFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { realOutside } from '../../../../agent/outside.ts';
import { quickLook, wholeInventory } from '../../../../agent/payload/extent.ts';
import { indexOf, PayloadFolder, type Tensors, withLength } from '../../../fixtures/payload.ts';
import { look, lookAt, type ShapeChanges, servedBy } from './look.ts';

let payload: PayloadFolder;
const others: PayloadFolder[] = [];

/** Four shards of two tensors each. */
const files = Object.fromEntries(
  [1, 2, 3, 4].map((number): [string, Tensors] => [
    `model-0000${number}-of-00004.safetensors`,
    { [`layers.${number}.a`]: ['BF16', 100, 50], [`layers.${number}.b`]: ['F32', 7] },
  ]),
);
const shard = (number: number): string => `model-0000${number}-of-00004.safetensors`;
const index = 'model.safetensors.index.json';

beforeEach(() => {
  payload = new PayloadFolder().writeTokenizer().writeJson('config.json', {}).writeSet(files);
});

afterEach(() => {
  payload.remove();
  for (const other of others.splice(0)) other.remove();
});

function another(): PayloadFolder {
  const folder = new PayloadFolder();
  others.push(folder);
  return folder;
}

async function refusals(shape: ShapeChanges = {}): Promise<readonly string[]> {
  const { findings } = await look(payload, shape);
  return findings.filter(({ severity }) => severity === 'refuse').map(({ message }) => message);
}

async function warnings(shape: ShapeChanges = {}): Promise<readonly string[]> {
  const { findings } = await look(payload, shape);
  expect(findings.filter(({ severity }) => severity === 'refuse')).toEqual([]);
  return findings.map(({ message }) => message);
}

function append(name: string, bytes: number): void {
  appendFileSync(join(payload.path, name), Buffer.alloc(bytes));
}

function cut(name: string, bytes: number): void {
  const path = join(payload.path, name);
  truncateSync(path, statSync(path).size - bytes);
}

describe('a whole set', () => {
  it('has no finding, and says what it is', async () => {
    const { findings, contents } = await look(payload);
    expect(findings).toEqual([]);
    expect(contents).toEqual([expect.stringMatching(/: 4 files, 8 tensors, 39\.88 KiB$/)]);
  });

  it('may be one file without an index', async () => {
    for (const name of [...Object.keys(files), index]) payload.delete(name);
    payload.writeTensors('model.safetensors', files[shard(1)] ?? {});
    expect(await refusals()).toEqual([]);
  });

  it('may be one file that an index names', async () => {
    for (const name of Object.keys(files)) payload.delete(name);
    payload.writeSet({ 'model.safetensors': files[shard(1)] ?? {} });
    expect((await look(payload)).findings).toEqual([]);
  });

  it('may describe its tensors in another order than they lie in', async () => {
    payload.delete(shard(1)).write(
      shard(1),
      Buffer.concat([
        withLength(
          JSON.stringify({
            'layers.1.b': { dtype: 'F32', shape: [7], data_offsets: [10_000, 10_028] },
            'layers.1.a': { dtype: 'BF16', shape: [100, 50], data_offsets: [0, 10_000] },
          }),
        ),
        Buffer.alloc(10_028),
      ]),
    );
    expect((await look(payload)).findings).toEqual([]);
  });

  it('is not written to', async () => {
    const before = statSync(join(payload.path, shard(1)), { bigint: true });
    await look(payload);
    const after = statSync(join(payload.path, shard(1)), { bigint: true });
    expect([after.mtimeNs, after.ctimeNs]).toEqual([before.mtimeNs, before.ctimeNs]);
  });
});

describe('a set is refused by the names of its files where', () => {
  it('a shard is missing', async () => {
    payload.delete(shard(3));
    expect(await refusals()).toEqual([`1 file with weights is missing: ${shard(3)}`]);
  });

  it('most are missing', async () => {
    for (const number of [1, 2, 4]) payload.delete(shard(number));
    expect(await refusals()).toEqual([
      `3 files with weights are missing: ${[1, 2, 4].map(shard).join(', ')}`,
    ]);
  });

  it('one is missing that the index does not name either', async () => {
    const { [shard(3)]: _, ...rest } = files;
    payload.delete(shard(3)).writeJson(index, indexOf(rest));
    expect(await refusals()).toEqual([`1 file with weights is missing: ${shard(3)}`]);
  });

  it('the index is of another export, with other files', async () => {
    payload.writeJson(index, {
      weight_map: { x: 'model-00001-of-00002.safetensors', y: 'model-00002-of-00002.safetensors' },
    });
    expect(await refusals()).toContainEqual(
      expect.stringMatching(
        /index\.json is of another export: it names model-00001-of-00002.*here is model-00001-of-00004/,
      ),
    );
  });

  it('the index is of another export, with other tensors', async () => {
    payload.writeJson(index, {
      weight_map: Object.fromEntries(
        [1, 2, 3, 4].map((number) => [`model.layers.${number}.a`, shard(number)]),
      ),
    });
    expect(await refusals()).toContainEqual(
      `${shard(1)} is of another export than the index: it holds layers.1.a, layers.1.b, and the index finds model.layers.1.a there`,
    );
  });

  it('there is no index, and all shards', async () => {
    payload.delete(index);
    expect(await refusals()).toEqual([
      `4 files of a numbered set, and no ${index} that says what they hold: copy it as well`,
    ]);
  });

  it('there is no index, and not all shards', async () => {
    payload.delete(index).delete(shard(2));
    expect(await refusals()).toContainEqual(`1 file with weights is missing: ${shard(2)}`);
  });

  it('there is one file, and an index of a set', async () => {
    for (const name of Object.keys(files)) payload.delete(name);
    payload.writeTensors('model.safetensors', { x: ['U8', 1] });
    expect(await refusals()).toEqual([
      expect.stringMatching(
        /is of another export: it names model-00001-of-00004.*and here is model\.safetensors/,
      ),
    ]);
  });

  it('there are both, a set and one file', async () => {
    payload.writeTensors('model.safetensors', { x: ['U8', 1] });
    expect(await refusals()).toEqual([expect.stringContaining('model.safetensors and what')]);
  });

  it('there are shards of two exports', async () => {
    payload.writeTensors('model-00001-of-00002.safetensors', { x: ['U8', 1] });
    expect(await refusals()).toContainEqual('the files are of several exports: of 2 and of 4 files each');
  });

  it('there are no weights at all', async () => {
    for (const name of [...Object.keys(files), index]) payload.delete(name);
    expect(await refusals()).toEqual(['it holds no weights: no safetensors and no GGUF file']);
  });
});

describe('a shard is refused by its name where', () => {
  it.each([1, 4096])('%i bytes are missing', async (bytes) => {
    cut(shard(2), bytes);
    expect(await refusals()).toEqual([
      expect.stringMatching(
        new RegExp(
          `^${shard(2)} is cut: ${bytes === 1 ? '1 byte' : '4,096 bytes'} of \\d+ (?:is|are) missing at its end$`,
        ),
      ),
    ]);
  });

  it('a byte is too many', async () => {
    append(shard(2), 1);
    expect(await refusals()).toEqual([`${shard(2)} has 1 byte more than its header describes`]);
  });

  it('its header would be larger than the file', async () => {
    payload.write(shard(2), withLength('{}', 10_000_000n));
    expect(await refusals()).toEqual([
      expect.stringMatching(/says that its header has 10000000 bytes, and the whole file has 10/),
    ]);
  });

  it('it lacks a tensor', async () => {
    payload.delete(shard(2)).writeTensors(shard(2), { 'layers.2.a': ['BF16', 100, 50] });
    expect(await refusals()).toEqual([`${shard(2)} does not hold layers.2.b, which the index finds there`]);
  });

  it('it holds one that the index does not know', async () => {
    payload.delete(shard(2)).writeTensors(shard(2), { ...files[shard(2)], more: ['U8', 3] });
    expect(await refusals()).toEqual([`${shard(2)} holds more, which the index does not name`]);
  });

  it('it holds one of another', async () => {
    payload.delete(shard(2)).writeTensors(shard(2), { ...files[shard(2)], 'layers.1.b': ['F32', 7] });
    expect(await refusals()).toEqual([`${shard(2)} holds layers.1.b, which the index finds in ${shard(1)}`]);
  });

  const described = (tensors: object, bytes: number): Buffer =>
    Buffer.concat([withLength(JSON.stringify(tensors)), Buffer.alloc(bytes)]);

  it.each<[string, Buffer, RegExp]>([
    [
      'tensors overlap',
      described(
        {
          'layers.2.a': { dtype: 'U8', shape: [8], data_offsets: [0, 8] },
          'layers.2.b': { dtype: 'U8', shape: [8], data_offsets: [4, 12] },
        },
        12,
      ),
      /lets layers\.2\.b and layers\.2\.a overlap by 4 bytes/,
    ],
    [
      'bytes belong to no tensor',
      described(
        {
          'layers.2.a': { dtype: 'U8', shape: [8], data_offsets: [0, 8] },
          'layers.2.b': { dtype: 'U8', shape: [8], data_offsets: [16, 24] },
        },
        24,
      ),
      /leaves 8 bytes before layers\.2\.b that no tensor has/,
    ],
    [
      'a tensor is shorter than its dimensions',
      described(
        {
          'layers.2.a': { dtype: 'BF16', shape: [8, 2], data_offsets: [0, 31] },
          'layers.2.b': { dtype: 'U8', shape: [1], data_offsets: [31, 32] },
        },
        32,
      ),
      /gives layers\.2\.a 31 bytes, and BF16 of \[8,2\] has 32/,
    ],
  ])('%s', async (_what, content, message) => {
    payload.write(shard(2), content);
    expect(await refusals()).toEqual([expect.stringMatching(message)]);
  });

  it.each<[string, unknown]>([
    ['a number', { format: 1 }],
    ['a map', { quantization: { bits: 4 } }],
    ['nothing that has names', 'pt'],
    ['a list', ['pt']],
  ])('its metadata hold %s, which safetensors 0.8 refuses', async (_what, metadata) => {
    payload.write(shard(2), described({ __metadata__: metadata }, 0));
    expect(await refusals()).toContainEqual(
      `${shard(2)} has a __metadata__ that is no map of texts: engines refuse the whole file`,
    );
  });

  it('its header begins with a byte order mark', async () => {
    payload.write(shard(2), withLength('\ufeff{}'));
    expect(await refusals()).toContainEqual(expect.stringMatching(/begins with a byte order mark/));
  });

  it('a tensor of a type that is not known here is not refused', async () => {
    payload.write(
      shard(2),
      described(
        {
          'layers.2.a': { dtype: 'F2', shape: [8], data_offsets: [0, 2] },
          'layers.2.b': { dtype: 'U8', shape: [1], data_offsets: [2, 3] },
        },
        3,
      ),
    );
    expect(await warnings()).toEqual([`${shard(2)} has tensors of type F2, whose size is not known here`]);
  });

  it.each<[string, string | Uint8Array, RegExp]>([
    [
      'a pointer of git-lfs',
      'version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 5\n',
      /pointer of git-lfs/,
    ],
    ['a pointer of git-annex', '/annex/objects/SHA256E-s5--ab.safetensors\n', /pointer of git-annex/],
    ['a web page', '<!doctype html><html></html>', /web page/],
    [
      "a server's error in XML",
      '<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>',
      /document in XML/,
    ],
    ["a server's error in JSON", '{"error":"Invalid credentials"}', /document in JSON.*Invalid credentials/],
    ["a server's error in words", 'Access to model is restricted', /a text, which begins/],
    ['empty', '', /is empty/],
    ['all zeros', Buffer.alloc(5000), /zeros where it begins/],
    [
      'zeros behind its length',
      Buffer.concat([withLength('', 100n), Buffer.alloc(500)]),
      /the header of .* is zeros/,
    ],
    ['a ZIP archive', Buffer.concat([Buffer.from('PK\x03\x04'), Buffer.alloc(99, 7)]), /ZIP archive/],
    ['compressed', Buffer.concat([Buffer.from([0x1f, 0x8b]), Buffer.alloc(99, 7)]), /compressed by gzip/],
  ])('it is %s', async (_what, content, message) => {
    payload.write(shard(2), content);
    expect(await refusals()).toEqual([expect.stringMatching(message)]);
    expect((await refusals())[0]).toContain(shard(2));
  });

  it('it is a folder', async () => {
    payload.delete(shard(2)).write(`${shard(2)}/x`, '');
    expect(await refusals()).toEqual([`${shard(2)} is a folder, no file`]);
  });

  it('it is a pipe', async () => {
    payload.delete(shard(2));
    execFileSync('mkfifo', [join(payload.path, shard(2))]);
    expect(await refusals()).toEqual([`${shard(2)} is a socket, pipe or device, no file`]);
  });

  it('it leads to a device without an end', async () => {
    payload.delete(shard(2)).link(shard(2), '/dev/zero');
    expect(await refusals()).toEqual([expect.stringMatching(/leads to \/dev\/zero in the container/)]);
  });
});

describe('files beside the set', () => {
  it('are named, and whether they repeat it', async () => {
    payload.writeTensors('consolidated.safetensors', files[shard(1)] ?? {});
    expect(await warnings()).toEqual([
      `${index} does not name consolidated.safetensors; consolidated.safetensors repeats 2 tensors of the set`,
    ]);
  });

  it('are looked at as well', async () => {
    payload.writeTensors('mtp.safetensors', { x: ['U8', 9] }, 1);
    expect(await refusals()).toEqual([expect.stringMatching(/^mtp\.safetensors is cut: 1 byte/)]);
  });

  it('hold nothing twice where there is no index', async () => {
    for (const name of [...Object.keys(files), index]) payload.delete(name);
    payload.writeTensors('a.safetensors', { x: ['U8', 1] }).writeTensors('b.safetensors', { x: ['U8', 1] });
    expect(await refusals()).toEqual(['b.safetensors holds x, which another file holds as well']);
  });

  it('may be a whole set of another layout', async () => {
    for (const number of [1, 2]) {
      payload.writeTensors(`consolidated-0000${number}-of-00002.safetensors`, { [`c${number}`]: ['U8', 1] });
    }
    expect(await warnings()).toEqual([
      `${index} does not name consolidated-00001-of-00002.safetensors, consolidated-00002-of-00002.safetensors`,
    ]);
  });

  it('of an unfinished download are named', async () => {
    payload.write(`${shard(4)}.incomplete`, '');
    expect(await warnings()).toEqual([
      expect.stringContaining('.incomplete: it is what an unfinished download leaves'),
    ]);
  });
});

describe('what is on record', () => {
  const expected = { shards: 4, extraFiles: 0, tensors: 8, bytes: 0 };

  it.each<[string, object, RegExp]>([
    ['shards', { shards: 34 }, /has 4 files of the numbered set, the shape expects 34/],
    [
      'extra files',
      { extraFiles: 2 },
      /has 0 safetensors files beside the numbered set, the shape expects 2/,
    ],
    ['tensors', { tensors: 113_074 }, /has 8 tensors, the shape expects 113,074/],
    ['bytes', { bytes: 1 }, /bytes of weights, the shape expects 1/],
    [
      'a file',
      { files: { [shard(1)]: { bytes: 5 } } },
      /has [\d,]+ bytes, the shape expects 5: [\d,]+ bytes too many/,
    ],
    ['a file that is missing', { files: { x: {} } }, /^x is not there, and the shape expects it/],
  ])('is another payload by its %s', async (_what, record, message) => {
    const messages = await refusals({ expected: record });
    expect(messages).toEqual([expect.stringMatching(message)]);
  });

  it('is only roughly compared with a size that is rounded', async () => {
    expect(await warnings({ expected: { sizeBytes: 37_000 } })).toEqual([
      expect.stringMatching(/weights have 39\.88 KiB, the shape expects about 36\.13 KiB/),
    ]);
    expect(await warnings({ expected: { sizeBytes: 41_500 } })).toEqual([]);
  });

  it.each<[string, object]>([
    ['files', { shards: 34 }],
    ['tensors', { tensors: 8 }],
    ['bytes', { bytes: 5 }],
  ])('of %s is not met by weights that say nothing of themselves', async (_what, record) => {
    for (const name of [...Object.keys(files), index]) payload.delete(name);
    payload.write('pytorch_model.bin', 'PK\x03\x04');
    expect(await refusals({ expected: record })).toEqual([
      expect.stringMatching(/the shape says how many it expects/),
    ]);
  });

  it('is not held against tensors that were not counted', async () => {
    for (const name of [...Object.keys(files), index]) payload.delete(name);
    payload.writeTensors('model.safetensors', { x: ['U8', 1] });
    const { findings, contents } = await look(
      payload,
      { expected: { tensors: 1 } },
      { extent: { ...quickLook, headerBytes: 4 } },
    );
    expect(findings.map(({ severity }) => severity)).toEqual(['note']);
    expect(contents).toEqual([expect.stringContaining('tensors not counted')]);
  });

  it('is met', async () => {
    const bytes = Object.keys(files).reduce(
      (sum, name) => sum + readFileSync(join(payload.path, name)).length,
      0,
    );
    expect(await warnings({ expected: { ...expected, bytes } })).toEqual([]);
  });

  it('of extra files says whether they are in the index or not', async () => {
    payload.writeTensors('extra.safetensors', { x: ['U8', 1] });
    const all = { ...files, 'mtp.safetensors': { y: ['U8', 1] } as Tensors };
    payload.writeSet(all);
    expect(await refusals({ expected: { extraFiles: 2 } })).toEqual([]);
    expect(await refusals({ expected: { extraFiles: 1 } })).toEqual([
      expect.stringContaining(
        '2 safetensors files beside the numbered set (extra.safetensors, mtp.safetensors)',
      ),
    ]);
  });
});

it('files without a tensor are no weights', async () => {
  for (const name of [...Object.keys(files), index]) payload.delete(name);
  payload.writeTensors('model.safetensors', {});
  expect(await refusals()).toEqual(['its files describe no tensor at all']);
});

describe('beside the weights', () => {
  it.each(['generation_config.json', 'preprocessor_config.json', 'video_preprocessor_config.json'])(
    '%s is what its name says, if it is there',
    async (name) => {
      payload.write(name, 'version https://git-lfs.github.com/spec/v1\r\noid sha256:ab\r\n');
      expect(await refusals()).toEqual([expect.stringContaining(`${name} is a pointer of git-lfs`)]);
    },
  );

  it('there must be a configuration', async () => {
    payload.delete('config.json');
    expect(await refusals()).toEqual(['it has no config.json']);
  });

  it('there must be a tokenizer', async () => {
    payload.delete('tokenizer.json');
    expect(await refusals()).toEqual([expect.stringContaining('it has no tokenizer')]);
  });

  it.each([['tokenizer.model'], ['tekken.json'], ['vocab.txt'], ['vocab.json', 'merges.txt']])(
    'a tokenizer may be %s',
    async (...names) => {
      payload.delete('tokenizer.json');
      for (const name of names) payload.write(name, name.endsWith('.json') ? '{}' : 'x');
      expect(await refusals()).toEqual([]);
    },
  );

  it('a tokenizer is no pointer to one', async () => {
    payload.write('tokenizer.json', 'version https://git-lfs.github.com/spec/v1\n');
    expect(await refusals()).toEqual([expect.stringMatching(/tokenizer\.json is a pointer of git-lfs/)]);
  });

  it('there must be a chat template', async () => {
    payload.delete('chat_template.jinja');
    expect(await refusals()).toEqual([expect.stringContaining('it has no chat template')]);
  });

  it('a chat template may be in the configuration of the tokenizer, or a file that the shape names', async () => {
    payload.delete('chat_template.jinja').writeJson('tokenizer_config.json', { chat_template: '{{ x }}' });
    expect(await refusals()).toEqual([]);
    payload.delete('tokenizer_config.json').write('own.jinja', '{{ x }}');
    expect(await refusals({ engine: { chatTemplate: '/model/own.jinja' } })).toEqual([]);
  });

  it('files that the arguments name must be there', async () => {
    expect(await refusals({ engine: { chatTemplate: '/model/own.jinja' } })).toEqual([
      expect.stringMatching(/^the arguments name \/model\/own\.jinja, and own\.jinja is not in /),
    ]);
  });
});

describe('a link', () => {
  it('inside the payload is followed', async () => {
    payload.write('blobs/abc', readFileSync(join(payload.path, shard(2)))).delete(shard(2));
    payload.link(shard(2), 'blobs/abc');
    expect((await look(payload)).findings).toEqual([]);
  });

  it('that leaves it is present on the host and not in the container', async () => {
    const cache = another();
    cache.writeSet(files).writeTokenizer();
    for (const number of [1, 2, 3, 4]) {
      cache.write(`blobs/${number}`, readFileSync(join(cache.path, shard(number)))).delete(shard(number));
      cache.link(`snapshots/r/${shard(number)}`, `../../blobs/${number}`);
    }
    const release = servedBy(payload, { payload: { folder: join(cache.path, 'snapshots/r') } });
    const { findings } = await lookAt(release);
    expect(findings.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(
        new RegExp(
          `${shard(4)} lead to /blobs/1 in the container, where nothing is mounted: present on the host, not reachable`,
        ),
      ),
    );
  });

  it('of a snapshot is followed where the whole cache is mounted', async () => {
    const cache = another();
    for (const name of [
      'config.json',
      'tokenizer.json',
      'chat_template.jinja',
      index,
      ...Object.keys(files),
    ]) {
      cache.write(`blobs/${name}`, readFileSync(join(payload.path, name)));
      cache.link(`snapshots/r/${name}`, `../../blobs/${name}`);
    }
    const release = servedBy(payload, { payload: { folder: cache.path, entry: 'snapshots/r' } });
    expect((await lookAt(release)).findings).toEqual([]);
  });

  it('is absolute in the container, where the host has the file', async () => {
    payload.write('blobs/abc', readFileSync(join(payload.path, shard(2)))).delete(shard(2));
    payload.link(shard(2), join(payload.path, 'blobs/abc'));
    expect(await refusals()).toEqual([
      expect.stringContaining('present on the host, not reachable in the container'),
    ]);
  });

  it('is absolute in the container, where the host has no file', async () => {
    payload.write('blobs/abc', readFileSync(join(payload.path, shard(2)))).delete(shard(2));
    payload.link(shard(2), '/model/blobs/abc');
    expect((await look(payload)).findings).toEqual([]);
  });

  it('may lead to another mount', async () => {
    const blobs = another().write('abc', readFileSync(join(payload.path, shard(2))));
    payload.delete(shard(2)).link(shard(2), '/blobs/abc');
    expect(await refusals({ mounts: [{ source: blobs.path, target: '/blobs' }] })).toEqual([]);
  });

  it.each<[string, string, RegExp]>([
    ['to nothing', 'nowhere', /is a link to what does not exist/],
    ['to nothing elsewhere', '/nowhere/at/all', /is a link to what does not exist/],
    ['to itself', shard(2), /is a link that leads back to itself/],
  ])('%s is told as such', async (_what, target, message) => {
    payload.delete(shard(2)).link(shard(2), target);
    expect(await refusals()).toEqual([expect.stringMatching(message)]);
  });

  it('of a folder that leads out is found as well', async () => {
    payload.link('assets/out', '/etc');
    expect(await refusals()).toEqual([expect.stringMatching(/^assets\/out leads to \/etc in the container/)]);
  });

  it('of a folder that leads back into it does not hang', async () => {
    payload.link('round', '.');
    expect(await refusals()).toEqual([]);
  });

  it.each([
    ['to itself', 'payload'],
    ['to nothing', 'nowhere'],
  ])('for the whole payload that leads %s is a finding', async (_what, target) => {
    const place = another().link('payload', target);
    const release = servedBy(payload, { payload: { folder: join(place.path, 'payload') } });
    expect((await lookAt(release)).findings).toEqual([
      expect.objectContaining({
        severity: 'refuse',
        message: expect.stringMatching(/is not a folder on the host/),
      }),
    ]);
  });

  it('may stand for the whole payload, which podman follows', async () => {
    const place = another().link('payload', payload.path);
    const release = servedBy(payload, { payload: { folder: join(place.path, 'payload') } });
    expect((await lookAt(release)).findings).toEqual([]);
  });
});

describe('a drafter', () => {
  let drafter: PayloadFolder;
  const size = 1000;
  const served = (expected?: object): ShapeChanges => ({
    engine: { speculative: { method: 'dflash', model: '/draft', num_speculative_tokens: 8 } },
    mounts: [{ source: drafter.path, target: '/draft', expected }],
  });

  beforeEach(() => {
    drafter = another()
      .writeJson('config.json', {})
      .writeTensors('model.safetensors', { w: ['U8', size] });
  });

  it('is inventoried as well, and needs no tokenizer', async () => {
    const { findings, contents } = await look(payload, served());
    expect(findings).toEqual([]);
    expect(contents).toHaveLength(2);
  });

  it('that is cut is refused under its mount', async () => {
    drafter.writeTensors('model.safetensors', { w: ['U8', size] }, 7);
    expect((await look(payload, served())).findings).toEqual([
      {
        severity: 'refuse',
        subject: 'mount /draft',
        message: expect.stringContaining('model.safetensors is cut: 7 bytes'),
      },
    ]);
  });

  it.each<[string, (folder: PayloadFolder) => void, RegExp]>([
    ['has no configuration', (folder) => folder.delete('config.json'), /no config\.json/],
    ['has no weights', (folder) => folder.delete('model.safetensors'), /no weights/],
    ['is not there', (folder) => folder.remove(), /is not on the host/],
  ])('that %s is refused', async (_what, damage, message) => {
    damage(drafter);
    expect(await refusals(served())).toEqual([expect.stringMatching(message)]);
  });

  it('of another size than the one on record is refused', async () => {
    const recorded = { files: { 'model.safetensors': { bytes: 2_342_169_800, sha256: 'b038e1d9' } } };
    expect(await refusals(served(recorded))).toEqual([
      expect.stringMatching(
        /^model\.safetensors has [\d,]+ bytes, the shape expects 2,342,169,800: [\d,]+ bytes missing$/,
      ),
    ]);
  });
});

describe('whatever lies there, a look ends', () => {
  it('at the time that it has', async () => {
    let seconds = 0;
    const slow = { ...realOutside, monotonicSeconds: () => (seconds += 20) };
    const { findings } = await look(payload, {}, { outside: slow, extent: wholeInventory });
    expect(findings).toContainEqual(
      expect.objectContaining({
        severity: 'refuse',
        message: expect.stringMatching(/an inventory ends after 120 s/),
      }),
    );
  });

  it.each([{ expected: { shards: 4 } }, {}])(
    'a quick one that ends anywhere calls nothing damaged that it has not seen, %j',
    async (shape) => {
      for (let steps = 1; steps <= 40; steps += 1) {
        let left = steps;
        const slow = { ...realOutside, monotonicSeconds: () => (left-- > 0 ? 0 : quickLook.seconds + 1) };
        const { findings } = await look(payload, shape, { outside: slow });
        expect(
          findings.filter(({ severity }) => severity !== 'note'),
          `${steps} steps`,
        ).toEqual([]);
      }
    },
  );

  it('at the headers that it reads', async () => {
    const small = { ...wholeInventory, allHeaderBytes: 100 };
    const { findings } = await look(payload, {}, { extent: small });
    expect(findings).toContainEqual(
      expect.objectContaining({
        severity: 'refuse',
        message: expect.stringMatching(/what follows was not looked at: the headers have more than/),
      }),
    );
  });

  it('at a folder of more entries than any payload has', async () => {
    const crowded = {
      ...realOutside,
      list: async () => Array.from({ length: 5001 }, (_, name) => `${name}`),
    };
    const { findings } = await look(payload, {}, { outside: crowded });
    expect(findings).toEqual([
      expect.objectContaining({ message: expect.stringMatching(/more than 5,000 entries/) }),
    ]);
  });

  it('with few findings where all is damaged', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 60 }, (_, number): [string, Tensors] => [
        `part${number}.safetensors`,
        { [`t${number}`]: ['U8', 5] },
      ]),
    );
    for (const name of Object.keys(files)) payload.delete(name);
    payload.writeSet(many);
    for (const name of Object.keys(many)) cut(name, 1);
    const messages = await refusals();
    expect(messages).toHaveLength(13);
    expect(messages.at(-1)).toBe('48 more of this kind');
  });

  it('without a word for the terminal', async () => {
    payload.writeTensors('evil\u001b[31m.safetensors', { x: ['U8', 5] }, 1);
    expect((await refusals()).join()).not.toMatch(/[^\x20-\x7e]/);
  });
});

describe('any set', () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9_.]{0,30}$/);
  const tensor = fc.tuple(
    fc.constantFrom('BF16', 'F32', 'U8', 'I32'),
    fc.integer({ min: 1, max: 40 }),
    fc.integer({ min: 1, max: 5 }),
  );
  const sets = fc
    .tuple(
      fc.uniqueArray(name, { minLength: 3, maxLength: 25 }),
      fc.array(tensor, { minLength: 25, maxLength: 25 }),
      fc.integer({ min: 2, max: 3 }),
    )
    .map(([names, tensors, shards]) => {
      const of = (number: number): Tensors =>
        Object.fromEntries(
          names.flatMap((own, place) =>
            place % shards === number ? [[own, tensors[place] ?? ['U8', 1, 1]] as const] : [],
          ),
        );
      return Object.fromEntries(
        Array.from(
          { length: shards },
          (_, number) => [`m-0000${number + 1}-of-0000${shards}.safetensors`, of(number)] as const,
        ),
      );
    });

  async function refusalsOf(folder: PayloadFolder): Promise<number> {
    const { findings } = await look(folder, {}, { extent: wholeInventory });
    return findings.filter(({ severity }) => severity === 'refuse').length;
  }

  const damages: Readonly<
    Record<string, (folder: PayloadFolder, set: Readonly<Record<string, Tensors>>, at: number) => void>
  > = {
    'a byte cut': (folder, set, at) => {
      const path = join(folder.path, Object.keys(set)[at % Object.keys(set).length] ?? '');
      truncateSync(path, statSync(path).size - 1);
    },
    'a byte more': (folder, set, at) => {
      appendFileSync(join(folder.path, Object.keys(set)[at % Object.keys(set).length] ?? ''), 'x');
    },
    'a tensor moved': (folder, set) => {
      const [[first, own], [second, others]] = Object.entries(set) as [[string, Tensors], [string, Tensors]];
      const [moved = '', ...rest] = Object.keys(own);
      folder.writeTensors(first, Object.fromEntries(rest.map((name) => [name, own[name] ?? ['U8']])));
      folder.writeTensors(second, { ...others, [moved]: own[moved] ?? ['U8'] });
    },
    'a file renamed': (folder, set, at) => {
      const old = Object.keys(set)[at % Object.keys(set).length] ?? '';
      folder.write(`x${old}`, readFileSync(join(folder.path, old))).delete(old);
    },
    'a file taken away': (folder, set, at) => {
      folder.delete(Object.keys(set)[at % Object.keys(set).length] ?? '');
    },
    'two files exchanged': (folder, set) => {
      const [first = '', second = ''] = Object.keys(set);
      const [one, other] = [first, second].map((own) => readFileSync(join(folder.path, own)));
      folder.write(first, other ?? '').write(second, one ?? '');
    },
  };

  it('that is whole passes', async () => {
    await fc.assert(
      fc.asyncProperty(sets, async (set) => {
        const folder = another().writeTokenizer().writeJson('config.json', {}).writeSet(set);
        expect(await refusalsOf(folder)).toBe(0);
        folder.remove();
      }),
      { numRuns: 30 },
    );
  });

  it.each(Object.keys(damages))('with %s is found', async (damage) => {
    await fc.assert(
      fc.asyncProperty(sets, fc.nat(), async (set, at) => {
        const folder = another().writeTokenizer().writeJson('config.json', {}).writeSet(set);
        damages[damage]?.(folder, set, at);
        expect(await refusalsOf(folder)).toBeGreaterThan(0);
        folder.remove();
      }),
      { numRuns: 20 },
    );
  });
});
