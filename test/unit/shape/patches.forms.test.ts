import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyExactly, parsePatchFile } from '../../../shape/patches.ts';

const target = '/usr/lib/python3.12/site-packages/vllm/v1/core/kv.py';
const path = 'vllm/v1/core/kv.py';
const header = `Evidence: measured twice.

Target: ${target}
Base-SHA256: ${'a'.repeat(64)}
Patched-SHA256: ${'b'.repeat(64)}

`;
const base = 'one\ntwo\nthree\n';
const hunk = '@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n';
const git = `diff --git a/${path} b/${path}\nindex 1234567..89abcde 100644\n`;
const names = `--- a/${path}\n+++ b/${path}\n`;

const faultsOf = (text: string | Uint8Array): readonly string[] =>
  (parsePatchFile(text).faults ?? []).map(({ name }) => name);

const accepted: Readonly<Record<string, string>> = {
  'git diff': header + git + names + hunk,
  'git diff --no-prefix': `${header}diff --git ${path} ${path}\n--- ${path}\n+++ ${path}\n${hunk}`,
  'git diff with other prefixes': `${header}--- i/${path}\n+++ w/${path}\n${hunk}`,
  'diff -u with time stamps': `${header}--- ${path}.orig\t2026-10-01 12:00:00.000000000 +0200\n+++ ${path}\t2026-10-01 12:01:00.5 +0200\n${hunk}`,
  'diff -ru of two trees': `${header}diff -ru old/${path} new/${path}\n--- old/${path}\n+++ new/${path}\n${hunk}`,
  'diff -u of a file of one folder': `${header}--- a/kv.py\n+++ b/kv.py\n${hunk}`,
  'format-patch mail with trailer': `From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001
From: Ann <ann@example.org>
Date: Thu, 1 Oct 2026 12:00:00 +0200
Subject: [PATCH] Count to two

${header}---
 ${path} | 2 +-
 1 file changed, 1 insertion(+), 1 deletion(-)

${git}${names}${hunk}-- 
2.47.0

`,
  'a hunk with the name of its function': header + names + hunk.replace('@@\n', '@@ def f():\n'),
  'a blank line that lost its blank': `${header}${names}@@ -1,2 +1,2 @@\n\n-two\n+2\n`,
  'no line end at the end': `${header}${names}@@ -1 +1 @@\n-one\n\\ No newline at end of file\n+1\n\\ No newline at end of file\n`,
  'text with what readers put for other encodings': header + names + hunk.replace(' three', ' x == "\ufffd"'),
  'prose below': `${header}${names}${hunk}\nThat was it.\n`,
};

const refused: Readonly<Record<string, readonly [name: string, text: string | Uint8Array]>> = {
  nothing: ['header', ''],
  'prose alone': ['no diff', `${header}Make the function faster.\n`],
  'prose with pseudo-hunks': ['pseudo-hunk', `${header}${names}@@ in forward() @@\n- two\n+ 2\n`],
  'a hunk of dots': ['pseudo-hunk', `${header}${names}@@ ... @@\n-two\n+2\n`],
  'a merge': ['pseudo-hunk', `${header}${names}@@@ -1,3 -1,3 +1,3 @@@\n  one\n- two\n++2\n  three\n`],
  'a hunk without file': ['hunk without file', header + hunk],
  'a context diff': [
    'no diff',
    `${header}*** a/${path}\n--- b/${path}\n***************\n*** 1,3 ****\n  one\n! two\n  three\n--- 1,3 ----\n  one\n! 2\n  three\n`,
  ],
  'too few lines': ['wrong counts', header + names + hunk.replace('+2\n', '')],
  'too many lines': ['wrong counts', `${header}${names}${hunk}+four\n`],
  'counts without digits': ['pseudo-hunk', header + names + hunk.replace('1,3', 'x,3')],
  'a trailer taken for a removed line': [
    'wrong counts',
    `${header}${names}@@ -1,4 +1,3 @@\n one\n-two\n+2\n three\n-- \n2.47.0\n`,
  ],
  'a context line that lost its first blank': [
    'wrong counts',
    header + names + hunk.replace('\n three', '\nthree'),
  ],
  'a context line that became another word': [
    'wrong counts',
    header + names + hunk.replace(' three', 'three'),
  ],
  'line numbers that do not follow': [
    'wrong line numbers',
    `${header}${names}${hunk}@@ -10 +11 @@\n-ten\n+10\n`,
  ],
  'hunks out of order': ['wrong line numbers', `${header}${names}@@ -10 +10 @@\n-ten\n+10\n${hunk}`],
  'a hunk that changes nothing': [
    'changes nothing',
    `${header}${names}@@ -1,3 +1,3 @@\n one\n two\n three\n`,
  ],
  'an end of file in the middle': [
    'end of file',
    `${header}${names}@@ -1,2 +1,2 @@\n-one\n\\ No newline at end of file\n+1\n two\n`,
  ],
  'a file that was cut off': ['cut off', (header + names + hunk).slice(0, -3)],
  'an absolute path': ['absolute path', `${header}--- ${target}\n+++ ${target}\n${hunk}`],
  'a path outside': ['path outside', `${header}--- a/../../${path}\n+++ b/../../${path}\n${hunk}`],
  'a path in quotes': ['quoted path', `${header}--- "a/k\\303\\244v.py"\n+++ "b/k\\303\\244v.py"\n${hunk}`],
  'another file': [
    'other file',
    `${header}--- a/vllm/v1/core/other.py\n+++ b/vllm/v1/core/other.py\n${hunk}`,
  ],
  'a file of that name in another folder': [
    'other file',
    `${header}--- a/vllm/v2/kv.py\n+++ b/vllm/v2/kv.py\n${hunk}`,
  ],
  'the end of another name': ['other file', `${header}--- a/my_kv.py\n+++ b/my_kv.py\n${hunk}`],
  'two files': ['two files', `${header}${names}${hunk}${names.replaceAll('kv', 'other')}${hunk}`],
  'two mails': ['two files', `${header}${names}${hunk}-- \n2.47.0\n\n${git}${names}${hunk}`],
  'a second file without lines': [
    'two files',
    `${header}${git}${names}${hunk}diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n`,
  ],
  'a rename alone': [
    'rename',
    `${header}diff --git a/${path} b/vllm/v1/kv.py\nsimilarity index 100%\nrename from ${path}\nrename to vllm/v1/kv.py\n`,
  ],
  'a rename with lines': [
    'rename',
    `${header}diff --git a/x.py b/${path}\nrename from x.py\nrename to ${path}\n${names}${hunk}`,
  ],
  'a copy': [
    'copy',
    `${header}diff --git a/${path} b/vllm/v1/kv.py\ncopy from ${path}\ncopy to vllm/v1/kv.py\n`,
  ],
  'a delete of git': [
    'delete',
    `${header}diff --git a/${path} b/${path}\ndeleted file mode 100644\n--- a/${path}\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n`,
  ],
  'a delete of diff -N': [
    'delete',
    `${header}--- a/${path}\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n`,
  ],
  'a new file of git': [
    'new file',
    `${header}diff --git a/${path} b/${path}\nnew file mode 100644\n--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n+one\n`,
  ],
  'a new file of diff -N': ['new file', `${header}--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n+one\n`],
  'a mode alone': ['mode', `${header}diff --git a/${path} b/${path}\nold mode 100644\nnew mode 100755\n`],
  'a mode with lines': [
    'mode',
    `${header}diff --git a/${path} b/${path}\nold mode 100644\nnew mode 100755\n${names}${hunk}`,
  ],
  'a link': ['mode', header + git.replace('100644', '120000') + names + hunk],
  'one of two trees that differ in more': ['two files', `${header}${names}${hunk}Only in b/vllm: more.py\n`],
  'a binary patch': ['binary', `${header}${git}GIT binary patch\nliteral 5\nMcmZ\n`],
  'binary files': ['binary', `${header}${git}Binary files a/${path} and b/${path} differ\n`],
  'CRLF in all lines': ['line ends', (header + names + hunk).replaceAll('\n', '\r\n')],
  'CRLF in the diff': ['line ends', header + (names + hunk).replaceAll('\n', '\r\n')],
  'a byte order mark': ['byte order mark', `\ufeff${header}${names}${hunk}`],
  'another encoding': [
    'encoding',
    Buffer.from(header + names + hunk.replace(' three', ' tr\xe8s'), 'latin1'),
  ],
  'a marker that would not be seen': ['header', `marker: x == 1\n${header}${names}${hunk}`],
  'a key with a blank': ['header', `Marker : x == 1\n${header}${names}${hunk}`],
  'an indented key': ['header', `  Supersedes: 01.patch\n${header}${names}${hunk}`],
  'two names in one line': ['header', `Supersedes: 01.patch, 02.patch\n${header}${names}${hunk}`],
  'a name that no shape writes': ['header', `Supersedes: patches/01.patch\n${header}${names}${hunk}`],
  'a superseded nothing': ['header', `Supersedes:\n${header}${names}${hunk}`],
  'a Target that no diff names plainly': ['header', (header + names + hunk).replaceAll('kv.py', 'kä.py')],
  'no Target': ['header', header.replace(/^Target.*\n/m, '') + names + hunk],
  'a Target below the diff': [
    'header',
    `${header.replace(/^Target.*\n/m, '')}${names}${hunk}\nTarget: ${target}\n`,
  ],
  'two Targets': ['header', `Target: ${target}\n${header}${names}${hunk}`],
  'a short hash': ['header', header.replace('a'.repeat(64), 'a'.repeat(63)) + names + hunk],
  'a hash in capitals': ['header', header.replace('a'.repeat(64), 'A'.repeat(64)) + names + hunk],
  'a relative Target': ['header', header.replace('/usr', 'usr') + names + hunk],
  'a Target with ..': ['header', header.replace('/usr', '/opt/../usr') + names + hunk],
  'a Target that is no Python': [
    'header',
    header.replace('kv.py', 'kv.so') + (names + hunk).replaceAll('kv.py', 'kv.so'),
  ],
  'a patch that leaves all as it is': [
    'header',
    header.replace('b'.repeat(64), 'a'.repeat(64)) + names + hunk,
  ],
};

describe('a patch file', () => {
  it.each(Object.entries(accepted))('is taken as %s writes it', (_form, text) => {
    expect(faultsOf(text)).toEqual([]);
  });

  it.each(Object.entries(refused))('is refused by name: %s', (_form, [name, text]) => {
    expect(faultsOf(text)).toContain(name);
  });

  it.each(Object.keys(accepted).slice(0, 7))('says the same change as %s', (form) => {
    const { patch } = parsePatchFile(accepted[form] ?? '');
    const applied = patch && applyExactly(base, patch.diff);
    expect(Buffer.from(applied?.bytes ?? []).toString()).toBe('one\n2\nthree\n');
  });

  it('gives the line of each fault, its limit and what to do', () => {
    const [fault] = parsePatchFile(`${header}${names}@@ in forward() @@\n`).faults ?? [];
    expect(fault?.line).toBe(header.split('\n').length + 2);
    expect(fault?.limit).toContain(`(line ${fault?.line})`);
    expect(fault?.remedy).toContain('slot patch new');
  });

  it('keeps marker and what it supersedes', () => {
    const text = header.replace(
      '\n\n',
      '\n\nMarker: STEPS == 4\nSupersedes: 02.patch\nSupersedes: 01.patch\n',
    );
    expect(parsePatchFile(text + names + hunk).patch?.header).toEqual({
      target,
      baseSha256: 'a'.repeat(64),
      patchedSha256: 'b'.repeat(64),
      marker: 'STEPS == 4',
      supersedes: ['02.patch', '01.patch'],
    });
  });

  it('is never taken with a hunk of other lines than its header counts, and nothing ends the reading', () => {
    const whole = header + git + names + hunk;
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(40), fc.string({ maxLength: 3 }), (at, length, text) => {
        const { patch, faults } = parsePatchFile(whole.slice(0, at) + text + whole.slice(at + length));
        expect(patch === undefined).toBe(faults !== undefined);
        for (const { header, lines } of patch?.diff ?? []) {
          const [, oldCount = '1', newCount = '1'] =
            /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(header) ?? [];
          expect(lines.filter(({ side }) => side !== 'new')).toHaveLength(Number(oldCount));
          expect(lines.filter(({ side }) => side !== 'old')).toHaveLength(Number(newCount));
        }
      }),
      { numRuns: 500 },
    );
  });
});
