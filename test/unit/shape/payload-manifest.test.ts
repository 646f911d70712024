import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  inOrder,
  manifestFromText,
  manifestIdOf,
  manifestText,
  payloadFileNameSchema,
  payloadManifestSchema,
  type SealedFile,
} from '../../../shape/payload-manifest.ts';

const hex = fc
  .array(fc.constantFrom(...'0123456789abcdef'), { minLength: 64, maxLength: 64 })
  .map((all) => all.join(''));
const files: fc.Arbitrary<SealedFile[]> = fc.uniqueArray(
  fc.record({
    name: fc.string({ unit: 'binary' }).filter((name) => payloadFileNameSchema.safeParse(name).success),
    size: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
    sha256: hex,
  }),
  { minLength: 1, selector: ({ name }) => name },
);

it('is read as it was written, whatever the names', () => {
  fc.assert(
    fc.property(files, (some) => {
      const manifest = payloadManifestSchema.parse(inOrder(some));
      expect(manifestFromText(manifestText(manifest))).toEqual(manifest);
    }),
  );
});

it('has the same id in any order of the files, and another one for another byte', () => {
  fc.assert(
    fc.property(files, fc.nat(), (some, index) => {
      const id = manifestIdOf(inOrder(some));
      expect(manifestIdOf(inOrder(some.toReversed()))).toBe(id);
      const changed = some.map((file, at) =>
        at === index % some.length ? { ...file, size: file.size === 0 ? 1 : file.size - 1 } : file,
      );
      expect(manifestIdOf(inOrder(changed))).not.toBe(id);
    }),
  );
});

it('never throws anything but the line that is wrong', () => {
  const line = fc.oneof(
    fc.string(),
    fc.constant('# 5 bytes'),
    hex.map((sha256) => `${sha256}  a`),
  );
  fc.assert(
    fc.property(fc.array(line), (lines) => {
      try {
        expect(payloadManifestSchema.safeParse(manifestFromText(lines.join('\n'))).success).toBe(true);
      } catch (error) {
        expect((error as Error).message).toMatch(/^line \d+: /);
      }
    }),
  );
});

it.each(['', '/a', 'a/', 'a//b', './a', '../a', 'a/../b', 'a\nb', 'a\\b', '\u0000', '\ud800'])(
  'takes no name like %j',
  (name) => {
    expect(payloadFileNameSchema.safeParse(name).success).toBe(false);
  },
);
