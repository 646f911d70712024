import { readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { quickLook } from '../../../../agent/payload/extent.ts';
import type { GgufContent } from '../../../../lab/payload/gguf.ts';
import { PayloadFolder } from '../../../fixtures/payload.ts';
import { planned } from '../../shape/rules/rule-cases.ts';
import { look, lookAt, servedByR9v } from './look.ts';

let payload: PayloadFolder;

const part = (number: number, count = 3): string => `x-0000${number}-of-0000${count}.gguf`;

/** Two tensors for each part. */
function contentOf(number: number, count = 3): GgufContent {
  return {
    split: { number: number - 1, count, tensors: 2 * count },
    ...(number === 1 && { tokens: ['a', 'b'] }),
    tensors: { [`blk.${number}.a`]: 64, [`blk.${number}.b`]: 96 },
  };
}

beforeEach(() => {
  payload = new PayloadFolder();
  for (const number of [1, 2, 3]) payload.writeGguf(part(number), contentOf(number));
});

afterEach(() => payload.remove());

async function refusals(entry = part(1)): Promise<readonly string[]> {
  const { findings } = await lookAt(servedByR9v(payload, entry));
  return findings.filter(({ severity }) => severity === 'refuse').map(({ message }) => message);
}

describe('a split GGUF model', () => {
  it('that is whole has no finding', async () => {
    const { findings, contents } = await lookAt(servedByR9v(payload, part(1)));
    expect(findings).toEqual([]);
    expect(contents).toEqual([expect.stringMatching(/: 3 files, 6 tensors, 1\.\d\d KiB$/)]);
  });

  it('may lie in a folder of the payload', async () => {
    for (const number of [1, 2, 3]) {
      payload
        .write(`Q8_0/${part(number)}`, readFileSync(join(payload.path, part(number))))
        .delete(part(number));
    }
    expect(await refusals(`Q8_0/${part(1)}`)).toEqual([]);
  });

  it('without its second part names it', async () => {
    payload.delete(part(2));
    expect(await refusals()).toEqual([`1 part of 3 is missing: ${part(2)}`]);
  });

  it('without its first part names it', async () => {
    payload.delete(part(1));
    expect(await refusals()).toEqual([`${part(1)} is not there`]);
  });

  it('is entered by its first part', async () => {
    expect(await refusals(part(2))).toEqual([
      `the engine is pointed at ${part(2)}, part 2: point it at the first, ${part(1)}`,
    ]);
  });

  it('whose parts were exchanged is found by their headers', async () => {
    const [two, three] = [2, 3].map((number) => readFileSync(join(payload.path, part(number))));
    payload.write(part(2), three ?? '').write(part(3), two ?? '');
    expect(await refusals()).toEqual([
      `${part(2)} is by its header part 3 of 3: it was renamed, or is of another split`,
      `${part(3)} is by its header part 2 of 3: it was renamed, or is of another split`,
    ]);
  });

  it('of another count than its headers say is refused', async () => {
    for (const number of [1, 2]) payload.writeGguf(part(number, 2), contentOf(number, 3));
    expect(await refusals(part(1, 2))).toContain(
      `${part(1, 2)} is by its header part 1 of 3: it was renamed, or is of another split`,
    );
  });

  it('whose first part was renamed is refused', async () => {
    payload.writeGguf('model.gguf', contentOf(1));
    expect(await refusals('model.gguf')).toEqual([
      expect.stringMatching(
        /^model\.gguf is part 1 of a split of 3, and its name does not say so.*-00001-of-00003/,
      ),
    ]);
  });

  it('that holds other tensors than it counts is refused', async () => {
    payload.writeGguf(part(3), { ...contentOf(3), tensors: { only: 32 } });
    expect(await refusals()).toEqual([`${part(1)} counts 6 tensors in all parts, and they hold 5`]);
  });

  it.each([1, 33])('whose part lacks %i bytes is refused', async (missing) => {
    payload.writeGguf(part(2), contentOf(2), missing);
    expect(await refusals()).toEqual(
      // The last tensor is followed by bytes that align the next.
      missing < 26
        ? []
        : [expect.stringMatching(new RegExp(`^${part(2)} is cut: \\d+ bytes? of \\d+ (?:is|are) missing`))],
    );
  });

  it('that was joined with cat is refused', async () => {
    const all = [1, 2, 3].map((number) => readFileSync(join(payload.path, part(number))));
    payload.write('model.gguf', Buffer.concat(all));
    expect(await refusals('model.gguf')).toEqual([
      expect.stringMatching(
        /^model\.gguf has [\d,]+ bytes more than its header describes, as files that were joined with cat/,
      ),
    ]);
  });
});

describe('a single GGUF file', () => {
  it('has no finding', async () => {
    payload.writeGguf('model.gguf', { tokens: ['a'], tensors: { a: 64 } });
    expect(await refusals('model.gguf')).toEqual([]);
  });

  it.each([part(1, 1), part(1, 3)])('is not named as a part, as %s is', async (name) => {
    payload.writeGguf(name, { tokens: ['a'], tensors: { a: 64 } });
    expect(await refusals(name)).toEqual([
      expect.stringMatching(/is named as a part of \d and its header knows of no split/),
    ]);
  });

  it.each(['x.gguf.part1of2', 'x.gguf.part2of2', 'x.gguf-split-a', 'x.gguf.aa', 'x.gguf.001'])(
    'is no piece of one, as %s is',
    async (name) => {
      payload.writeGguf(name, { tensors: { a: 64 } });
      expect(await refusals(name)).toEqual([
        expect.stringMatching(
          /is a piece of a file that was cut by bytes.*join the pieces in their order with cat/,
        ),
      ]);
    },
  );

  it('that lies there in pieces is told so', async () => {
    payload.write('model.gguf.part1of2', 'x').write('model.gguf.part2of2', 'x');
    expect(await refusals('model.gguf')).toEqual([
      'model.gguf is not there; here are pieces of it, model.gguf.part1of2, model.gguf.part2of2: join them in their order with cat',
    ]);
  });

  it.each<[string, string | Uint8Array, RegExp]>([
    ['a pointer of git-lfs', 'version https://git-lfs.github.com/spec/v1\n', /pointer of git-lfs/],
    ['a web page', '<html>', /web page/],
    ['an error', '{"error":"gone"}', /document in JSON/],
    ['empty', '', /is empty/],
    ['zeros', Buffer.alloc(1000), /zeros/],
    ['an older format', Buffer.from('tjgg\x03\0\0\0\0\0\0\0'), /format before GGUF/],
    ['something else', Buffer.from([1, 2, 3, 4, 5, 6, 7, 8, 9]), /no GGUF file: it begins with/],
    [
      'of the other byte order',
      Buffer.from('GGUF\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'),
      /other byte order/,
    ],
    ['of version 1', Buffer.from('GGUF\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'), /GGUF version 1/],
    [
      'cut within its header',
      Buffer.from('GGUF\x03\0\0\0\x05\0\0\0\0\0\0\0'),
      /cut: it ends within its header/,
    ],
    [
      'of more values than can be',
      Buffer.concat([Buffer.from('GGUF\x03\0\0\0'), Buffer.alloc(16, 0xff)]),
      /header that cannot be/,
    ],
  ])('is not %s', async (_what, content, message) => {
    payload.write('model.gguf', content);
    expect(await refusals('model.gguf')).toEqual([expect.stringMatching(message)]);
  });

  it('is cut where a text in its header would end behind it, however large it is', async () => {
    const header = Buffer.from('GGUF\x03\0\0\0'.padEnd(24, '\0'));
    header.writeUInt32LE(1, 16);
    payload.write('model.gguf', Buffer.concat([header, Buffer.from([0, 0, 0, 0, 0, 1, 0, 0])]));
    truncateSync(join(payload.path, 'model.gguf'), 2 ** 29);
    expect(await refusals('model.gguf')).toEqual([
      expect.stringMatching(/is cut: it ends within its header/),
    ]);
  });

  it('leaves no hole between its tensors, which llama.cpp refuses', async () => {
    payload.writeGguf('model.gguf', { tokens: ['a'], tensors: { a: 32, b: 32 } });
    const path = join(payload.path, 'model.gguf');
    const bytes = readFileSync(path);
    // The offset is the last that is said of a tensor.
    const offset = bytes.lastIndexOf('b') + 1 + 4 + 8 + 4;
    bytes.writeUInt32LE(128, offset);
    payload.write('model.gguf', Buffer.concat([bytes, Buffer.alloc(64)]));
    expect(await refusals('model.gguf')).toEqual(['model.gguf leaves 64 bytes before b that no tensor has']);
  });

  it('of a newer version is not refused', async () => {
    payload.writeGguf('model.gguf', { version: 9, tensors: {} });
    expect((await lookAt(servedByR9v(payload, 'model.gguf'))).findings).toEqual([
      expect.objectContaining({ severity: 'warn', message: expect.stringContaining('GGUF version 9') }),
    ]);
  });

  it('has a header of bounded length', async () => {
    payload.writeGguf('model.gguf', { tokens: ['x'.repeat(2 ** 19)], tensors: {} });
    const extent = { ...quickLook, headerBytes: 2 ** 18 };
    expect((await lookAt(servedByR9v(payload, 'model.gguf'), { extent })).findings).toEqual([
      expect.objectContaining({
        severity: 'note',
        message: expect.stringMatching(/more than the 262,144 bytes that a quick look reads/),
      }),
    ]);
  });

  it('is read in further steps where its header is long', async () => {
    payload.writeGguf('model.gguf', { tokens: ['x'.repeat(2 ** 20)], tensors: { a: 32 } });
    expect(await refusals('model.gguf')).toEqual([]);
  });
});

describe('a GGUF file beside the configuration of another export', () => {
  beforeEach(() => {
    payload.writeJson('config.json', { quantization_config: { quant_method: 'fp8' } });
  });

  it('is refused for vLLM, which reads both', async () => {
    const { findings } = await look(payload, { payload: { entry: part(1) } });
    expect(findings).toContainEqual(
      expect.objectContaining({
        severity: 'refuse',
        message: expect.stringMatching(/^config\.json beside x-00001.* quant_method fp8/),
      }),
    );
  });

  it('is told for an engine that reads it not', async () => {
    const { findings } = await lookAt(servedByR9v(payload, part(1)));
    expect(findings).toEqual([
      expect.objectContaining({ severity: 'warn', message: expect.stringContaining('quant_method fp8') }),
    ]);
  });
});

it('a folder of GGUF files needs a file that vLLM is pointed at', async () => {
  payload.writeJson('config.json', {}).writeTokenizer();
  expect((await look(payload)).findings).toEqual([
    expect.objectContaining({
      severity: 'refuse',
      message: expect.stringContaining('name the first GGUF file in slot:shape.payload.entry'),
    }),
  ]);
});

it('a file that only the arguments name is looked at as well', async () => {
  payload.writeGguf('mmproj.gguf', { tensors: { a: 64 } }, 34);
  const release = planned('r9v-q8_0', {
    shape: {
      payload: { folder: payload.path, entry: part(1) },
      engine: {
        arguments: [
          '--model',
          '{payload}',
          '--port',
          '{port}',
          '--host',
          '0.0.0.0',
          '--alias',
          '{servedNames}',
          '--mmproj',
          '/model/mmproj.gguf',
        ],
      },
    },
  });
  expect((await lookAt(release)).findings).toEqual([
    expect.objectContaining({ severity: 'refuse', message: expect.stringMatching(/^mmproj\.gguf is cut/) }),
  ]);
});

it('the model that only the arguments name is the one that is looked at', async () => {
  payload.delete(part(3));
  const release = planned('r9v-q8_0', {
    shape: {
      payload: { folder: payload.path, entry: undefined },
      engine: {
        arguments: [
          '--model',
          `{payload}/${part(1)}`,
          '--port',
          '{port}',
          '--host',
          '0.0.0.0',
          '--alias',
          '{servedNames}',
        ],
      },
    },
  });
  expect((await lookAt(release)).findings).toEqual([
    expect.objectContaining({ severity: 'refuse', message: `1 part of 3 is missing: ${part(3)}` }),
  ]);
});

describe('any GGUF file', () => {
  it('that is cut is found, wherever', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 900 }), async (kept) => {
        payload.writeGguf('model.gguf', { tokens: ['a', 'b'], tensors: { a: 320, b: 320 } });
        truncateSync(join(payload.path, 'model.gguf'), kept);
        expect(await refusals('model.gguf')).toHaveLength(1);
      }),
      { numRuns: 50 },
    );
  });

  it('of any bytes ends the look', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
        payload.write('model.gguf', Buffer.concat([Buffer.from('GGUF\x03\0\0\0'), bytes]));
        expect((await lookAt(servedByR9v(payload, 'model.gguf'))).findings.length).toBeLessThan(4);
      }),
      { numRuns: 100 },
    );
  });
});
