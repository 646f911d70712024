import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { plannedShape } from '../../../components/planned-shape.ts';
import {
  parsePatchHashes,
  patchedFilesOf,
  patchHashesFile,
  patchHashesText,
} from '../../../shape/patches.ts';
import { sha256 } from '../../../shape/release.ts';
import { completedFile } from '../../fixtures/operator-files.ts';
import { patchText } from '../../fixtures/patches.ts';

const target = '/usr/lib/python3.12/site-packages/vllm/v1/core/kv.py';
const steps = ['x = 0\n', 'x = 1\n', 'x = 2\n', 'x = 3\n'];
const step = (from: number, to: number, ...lines: string[]): string =>
  patchText({ target, before: steps[from] ?? '', after: steps[to] ?? '', lines });

const texts = new Map([
  ['01.patch', step(0, 1)],
  ['02.patch', step(1, 2)],
  ['02b.patch', step(1, 3, 'Supersedes: 02.patch')],
  ['other-first.patch', step(0, 2)],
]);
const recorded = new Map([...texts].map(([name, text]) => [name, sha256(text)] as const));

const problemsOf = (
  names: readonly string[],
  among = texts,
  hashes: typeof recorded | undefined = recorded,
) =>
  patchedFilesOf(names, among, 'Pulumi.glm.yaml', hashes).problems.map(
    ({ key, limit, remedy }) => `${key} ${limit}: ${remedy}`,
  );

describe('patches of one file', () => {
  it('follow from each other by their hashes', () => {
    expect(problemsOf(['01.patch', '02.patch'])).toEqual([]);
    expect(problemsOf(['01.patch', '02b.patch'])).toEqual([]);
  });

  it.each([
    [['02.patch', '01.patch'], 'put 01.patch before 02.patch'],
    [['01.patch', 'other-first.patch'], '01.patch was made for the same file as other-first.patch'],
    [['01.patch', '01.patch'], 'must be named once'],
    [['01.patch', './01.patch'], 'write 01.patch'],
    [['/01.patch'], 'write 01.patch'],
    [['01.patch', '02.patch', '02b.patch'], 'must not stand beside 02.patch, whose place 02b.patch takes'],
    [['02b.patch', '01.patch', '02.patch'], 'must not stand beside 02.patch'],
  ])('are refused as %j', (names, reason) => {
    expect(problemsOf(names).join('\n')).toContain(reason);
  });
});

describe('what is recorded of patch files', () => {
  it('refuses one that changed, by name, and says how to accept it', () => {
    const changed = new Map(texts).set('01.patch', `${texts.get('01.patch')}\n`);
    const [problem] = problemsOf(['01.patch'], changed);
    expect(problem).toMatch(/patches\[0\] .*SHA256SUMS.*changed since it was recorded/);
    expect(problem).toContain('slot patch record 01.patch');
  });

  it('refuses one that is not recorded', () => {
    expect(problemsOf(['01.patch'], texts, new Map())[0]).toContain('must be recorded in patches/SHA256SUMS');
  });

  it.each([
    ['CRLF', `${'a'.repeat(64)}  01.patch\r\n`, /line 1: must have a plain line end/],
    ['a merge', `${'a'.repeat(64)}  01.patch\n<<<<<<< HEAD\n`, /line 2: must be a hash and a plain path/],
    ['a short hash', `${'a'.repeat(63)}  01.patch\n`, /line 1: must be a hash/],
    ['capitals', `${'A'.repeat(64)}  01.patch\n`, /line 1: must be a hash/],
    ['another path', `${'a'.repeat(64)}  ./01.patch\n`, /line 1: must be a hash and a plain path/],
    ['a name twice', `${'a'.repeat(64)}  01.patch\n${'b'.repeat(64)}  01.patch\n`, /line 2: .* once/],
  ])('is refused when it was damaged: %s', (_what, text, reason) => {
    expect(() => parsePatchHashes(text)).toThrow(reason);
  });

  it('says what is wrong with a patch of another encoding, and takes text that only looks so', () => {
    const read = `${texts.get('01.patch')}\ufffd\n`;
    const among = new Map(texts).set('01.patch', read);
    expect(problemsOf(['01.patch'], among)[0]).toContain('must be UTF-8');
    expect(problemsOf(['01.patch'], among, new Map([['01.patch', sha256(read)]]))).toEqual([]);
  });

  it('is what sha256sum writes and checks', () => {
    const folder = mkdtempSync(join(tmpdir(), 'patch-hashes-'));
    try {
      mkdirSync(join(folder, 'glm'));
      const files = new Map([...texts].map(([name, text]) => [`glm/${name}`, text] as const));
      for (const [name, text] of files) writeFileSync(join(folder, name), text);
      const hashes = new Map([...files].map(([name, text]) => [name, sha256(text)] as const));
      writeFileSync(join(folder, patchHashesFile), patchHashesText(hashes));
      execFileSync('sha256sum', ['--check', '--strict', '--quiet', patchHashesFile], { cwd: folder });
      const written = execFileSync('sha256sum', [...files.keys()], { cwd: folder, encoding: 'utf8' });
      expect(parsePatchHashes(written)).toEqual(hashes);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('is read as it is written, whatever the names are', () => {
    const name = fc
      .stringMatching(/^[\w.-]+(\/[\w. -]*[\w.-])*$/)
      .filter((text) => text !== '' && posix.normalize(text) === text);
    const hash = fc.string().map((text) => sha256(text));
    fc.assert(
      fc.property(fc.array(fc.tuple(name, hash)), (entries) => {
        const hashes = new Map(entries);
        expect(parsePatchHashes(patchHashesText(hashes))).toEqual(hashes);
      }),
    );
  });
});

describe('a rename of the service over the whole repository', () => {
  const folders: string[] = [];
  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
  });

  /** A repository with a patch whose context names the service, as one did. */
  function repository(name: string): string {
    const folder = mkdtempSync(join(tmpdir(), 'renamed-repository-'));
    folders.push(folder);
    for (const part of ['models', 'images']) cpSync(part, join(folder, part), { recursive: true });
    writeFileSync(join(folder, 'Pulumi.dankserver.yaml'), completedFile('dankserver'));
    const before = '# as frank-archon needs it\nx = 0\n';
    const text = patchText({ target, before, after: before.replace('0', '1') });
    const shape = completedFile('glm-w4a16').replace(/^( +)shortName:.*$/m, `$&\n$1patches: [${name}]`);
    expect(shape).toContain(name);
    writeFileSync(join(folder, 'Pulumi.glm-w4a16.yaml'), shape);
    mkdirSync(join(folder, 'patches'));
    writeFileSync(join(folder, 'patches', name), text);
    writeFileSync(join(folder, 'patches', patchHashesFile), patchHashesText(new Map([[name, sha256(text)]])));
    return folder;
  }

  function rename(folder: string): void {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      writeFileSync(path, readFileSync(path, 'utf8').replaceAll('frank-archon', 'frank-nova'));
    }
  }

  it('leaves the plan as it is without a patch, and renames the service', () => {
    const folder = repository('kv.patch');
    writeFileSync(join(folder, 'Pulumi.glm-w4a16.yaml'), completedFile('glm-w4a16'));
    rename(folder);
    expect(plannedShape(folder, 'glm-w4a16').release.service).toBe('frank-nova');
  });

  it('is refused when it altered a patch', () => {
    const folder = repository('kv.patch');
    expect(plannedShape(folder, 'glm-w4a16').release.patches).toHaveLength(1);
    rename(folder);
    expect(() => plannedShape(folder, 'glm-w4a16')).toThrow(
      /kv\.patch[\s\S]*a rename over the whole repository/,
    );
  });

  it('is refused when the name of the patch itself has the service', () => {
    const folder = repository('frank-archon-kv.patch');
    rename(folder);
    expect(() => plannedShape(folder, 'glm-w4a16')).toThrow(/frank-nova-kv\.patch/);
  });

  it('is refused without a record of the patches', () => {
    const folder = repository('kv.patch');
    rmSync(join(folder, 'patches', patchHashesFile));
    expect(() => plannedShape(folder, 'glm-w4a16')).toThrow(/must be recorded in patches\/SHA256SUMS/);
  });
});
