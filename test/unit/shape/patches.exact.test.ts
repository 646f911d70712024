import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { applyExactly, isContained, parsePatchFile } from '../../../shape/patches.ts';

const header = `Target: /site/vllm/model.py\nBase-SHA256: ${'a'.repeat(64)}\nPatched-SHA256: ${'b'.repeat(64)}\n\n`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'exact-diff-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Bytes that no reader may touch: other line ends, none at the end, what readers put for what they cannot read. */
const lineBytes = fc
  .tuple(
    fc.constantFrom(
      '',
      'x',
      'def f():',
      '    return 1',
      '-- ',
      '--- a',
      '+++ b',
      '@@ -1 +1 @@',
      '\xc3\xa4\xef\xbf\xbd',
      '\t ',
    ),
    fc.constantFrom('\n', '\n', '\n', '\r\n', '\r\r\n', '\x00\n'),
  )
  .map(([text, end]) => text + end);
const fileBytes = fc
  .tuple(fc.array(lineBytes, { maxLength: 12 }), fc.constantFrom('', '', 'no end'))
  .map(([lines, last]) => Buffer.from(lines.join('') + last, 'latin1'));

function diffOf(before: Buffer, after: Buffer, context: number): Buffer {
  writeFileSync(join(folder, 'before'), before);
  writeFileSync(join(folder, 'after'), after);
  const { stdout } = spawnSync(
    'diff',
    [
      '--text',
      `--unified=${context}`,
      '--label=a/vllm/model.py',
      '--label=b/vllm/model.py',
      'before',
      'after',
    ],
    { cwd: folder },
  );
  return stdout;
}

function parsed(diff: Buffer | string) {
  const { patch, faults } = parsePatchFile(Buffer.concat([Buffer.from(header), Buffer.from(diff as Buffer)]));
  if (patch === undefined) throw new Error(JSON.stringify(faults));
  return patch.diff;
}

describe('the exact applier', () => {
  it('makes of the old file the new one, whatever bytes they have, and knows it again', () => {
    fc.assert(
      fc.property(fileBytes, fileBytes, fc.integer({ min: 0, max: 3 }), (before, after, context) => {
        fc.pre(!before.equals(after));
        const diff = parsed(diffOf(before, after, context));
        const { bytes, fault } = applyExactly(before, diff);
        expect(fault).toBeUndefined();
        expect(Buffer.from(bytes ?? [])).toEqual(after);
        // Of a hunk that leaves nothing, nothing can be seen.
        expect(isContained(after, diff)).toBe(
          diff.every(({ lines }) => lines.some(({ side }) => side !== 'old')),
        );
      }),
      { numRuns: 60 },
    );
  });

  it('takes a file only where GNU patch without fuzz takes it, and makes the same of it', () => {
    fc.assert(
      fc.property(fileBytes, fileBytes, fileBytes, (before, after, other) => {
        fc.pre(!before.equals(after));
        const text = diffOf(before, after, 3);
        const base = other.length % 2 === 0 ? before : other;
        const { bytes } = applyExactly(base, parsed(text));
        writeFileSync(join(folder, 'base'), base);
        const gnu = spawnSync(
          'patch',
          [
            '--binary',
            '--fuzz=0',
            '--batch',
            '--forward',
            '--reject-file=-',
            '--no-backup-if-mismatch',
            '--output=out',
            'base',
          ],
          { cwd: folder, input: text },
        );
        if (bytes === undefined) return;
        expect(gnu.status, gnu.stdout.toString()).toBe(0);
        expect(readFileSync(join(folder, 'out'))).toEqual(Buffer.from(bytes));
      }),
      { numRuns: 40 },
    );
  });

  it('never takes a hunk at another line or with another line of context', () => {
    const numbered = Array.from({ length: 9 }, (_, line) => `line ${line}\n`);
    const before = Buffer.from(numbered.join(''));
    const after = Buffer.from(numbered.map((line, at) => (at === 4 ? 'changed\n' : line)).join(''));
    const diff = parsed(diffOf(before, after, 3));
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 8 }),
        fc.constantFrom('inserted', 'removed', 'altered'),
        (at, how) => {
          const lines = [...numbered];
          if (how === 'inserted') lines.splice(at, 0, 'more\n');
          else if (how === 'removed') lines.splice(at, 1);
          else lines[at] = 'other\n';
          const { fault } = applyExactly(lines.join(''), diff);
          // Lines 1 to 7 are the hunk's; what comes after it may change.
          const mayApply = at === 8 || (how === 'altered' && at === 0);
          expect(fault === undefined).toBe(mayApply);
          if (fault?.name === 'lines differ') expect(fault.message).toContain(`line ${fault.line} is`);
        },
      ),
    );
  });
});

describe('a hunk that does not stand where it says', () => {
  const method = (name: string) =>
    `class ${name}:\n    def forward(self, x):\n        y = x\n        return y\n\n`;
  const file = method('First') + method('Second');
  const diff = (text: string) => parsed(`--- a/vllm/model.py\n+++ b/vllm/model.py\n${text}`);

  it('is refused when its outer lines name a class that is gone, which fuzz would take', () => {
    const stray = diff(
      '@@ -6,4 +6,4 @@\n class Third:\n     def forward(self, x):\n-        y = x\n+        y = x + 1\n         return y\n',
    );
    const { fault } = applyExactly(file, stray);
    expect(fault).toMatchObject({ name: 'lines differ', hunk: 1, line: 6 });
    expect(fault?.differing).toEqual([{ line: 6, wanted: '"class Third:"', found: '"class Second:"' }]);
    // GNU patch takes it, in the neighbour.
    writeFileSync(join(folder, 'base'), file);
    const text =
      '--- a/vllm/model.py\n+++ b/vllm/model.py\n@@ -6,4 +6,4 @@\n class Third:\n     def forward(self, x):\n-        y = x\n+        y = x + 1\n         return y\n';
    expect(
      execFileSync('patch', ['--batch', '--output=out', 'base'], { cwd: folder, input: text }).toString(),
    ).toContain('fuzz');
  });

  it.each([
    ['already contained', file.replace('y = x', 'y = x + 1'), 3],
    ['moved', `# one line more\n${file}`, 1],
    ['line ends differ', file.replaceAll('\n', '\r\n'), 1],
    ['lines differ', file.replace('class First', 'class Renamed'), 1],
    ['lines differ', 'class First:\n', 2],
    ['lines differ', '', 1],
  ])('is refused as "%s"', (name, base, line) => {
    const change = diff(
      '@@ -1,4 +1,4 @@\n class First:\n     def forward(self, x):\n-        y = x\n+        y = x + 1\n         return y\n',
    );
    expect(applyExactly(file, change).fault).toBeUndefined();
    expect(applyExactly(base, change).fault).toMatchObject({ name, hunk: 1, line });
  });

  it('is refused when its own lines have other line ends, or the file is too short for it', () => {
    const crlf = diff('@@ -1,2 +1,2 @@\n-class First:\r\n+class One:\r\n     def forward(self, x):\r\n');
    expect(applyExactly(file, crlf).fault).toMatchObject({ name: 'line ends differ', line: 1 });
    const below = diff('@@ -20,0 +21 @@\n+more\n');
    expect(applyExactly(file, below).fault?.message).toContain('the file has 10 lines');
  });

  it('is not taken for contained where all that it does is to remove', () => {
    const removal = diff('@@ -2 +1,0 @@\n-    def forward(self, x):\n');
    expect(isContained(`# more\n${file}`, removal)).toBe(false);
  });

  it('is refused when the file ends otherwise than the hunk says', () => {
    const atEnd = diff('@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n');
    expect(applyExactly('a\n', atEnd).bytes).toEqual(Buffer.from('b'));
    expect(applyExactly('a\nc\n', atEnd).fault).toMatchObject({ name: 'end of file differs' });
    expect(applyExactly('a', atEnd).fault).toMatchObject({
      differing: [{ line: 1, wanted: '"a"', found: '"a" without line end' }],
    });
  });
});
