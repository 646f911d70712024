import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Outcome, Wanted } from './project.ts';
import { useProjectAndSshd } from './setup.ts';

const used = useProjectAndSshd();

/** The host of the suite is this machine: `there` is a path on it. */
const here = (name: string) => path.join(used.project.folder, 'here', name);
const there = (name: string) => path.join(used.project.folder, 'there', name);
const textAt = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : undefined);

function copies(args: Record<string, Record<string, unknown>>): Wanted {
  const resources = Object.entries(args).map(([name, { connection, ...own }]) => {
    const reached = { ...used.sshd.connection, dialErrorLimit: 0, ...(connection as object) };
    return [name, { type: 'remote.CopyToRemote', args: { ...own, connection: reached } }];
  });
  return { resources: Object.fromEntries(resources) };
}

describe('what a create copies', () => {
  let outcome: Outcome;
  beforeAll(async () => {
    mkdirSync(here('folder/inner'), { recursive: true });
    mkdirSync(there('existing'), { recursive: true });
    writeFileSync(here('program'), '#!/bin/sh\n');
    chmodSync(here('program'), 0o755);
    writeFileSync(here('folder/a'), 'a');
    writeFileSync(here('folder/inner/b'), 'b');
    writeFileSync(there('closed'), 'much longer than the new text');
    chmodSync(there('closed'), 0o600);
    outcome = await used.project.up(
      copies({
        text: { source: { text: 'text' }, remotePath: there('new/parents/text') },
        program: { source: { file: here('program') }, remotePath: there('program') },
        inside: { source: { file: here('program') }, remotePath: there('existing') },
        closed: { source: { text: 'new' }, remotePath: there('closed') },
        folder: { source: { folder: here('folder') }, remotePath: there('folders') },
        contents: { source: { folder: `${here('folder')}/` }, remotePath: there('contents') },
      }),
    );
  });

  it('succeeds', () => expect(outcome.text).toContain('7 created'));
  it('a text, and the folders above it', () => expect(textAt(there('new/parents/text'))).toBe('text'));
  it('a file without its mode', () => {
    expect(textAt(there('program'))).toBe('#!/bin/sh\n');
    expect(statSync(there('program')).mode & 0o111).toBe(0);
  });
  it('a file under its name into a folder that exists', () => {
    expect(textAt(there('existing/program'))).toBe('#!/bin/sh\n');
  });
  it('over a file that exists: in place, the mode as it was', () => {
    expect(textAt(there('closed'))).toBe('new');
    expect(statSync(there('closed')).mode & 0o777).toBe(0o600);
  });
  it('a folder under its name, or its contents with a slash at the end', () => {
    expect(textAt(there('folders/folder/inner/b'))).toBe('b');
    expect(textAt(there('contents/inner/b'))).toBe('b');
  });
});

describe('what a change copies', () => {
  const early = () => ({
    content: { source: { text: 'one' }, remotePath: there('changes/content') },
    place: { source: { text: 'one' }, remotePath: there('changes/place') },
    host: { source: { text: 'one' }, remotePath: there('changes/host'), connection: { perDialTimeout: 10 } },
    moved: { source: { file: 'first' }, remotePath: there('changes/moved') },
    trigger: { source: { text: 'one' }, remotePath: there('changes/trigger'), triggers: ['one'] },
  });
  let outcome: Outcome;
  beforeAll(async () => {
    const program = path.join(used.project.folder, 'program');
    writeFileSync(path.join(program, 'first'), 'same');
    writeFileSync(path.join(program, 'second'), 'same');
    const wanted = early();
    await used.project.up(copies(wanted));
    for (const name of Object.keys(wanted)) writeFileSync(there(`changes/${name}`), 'edited');
    outcome = await used.project.up(
      copies({
        content: { ...wanted.content, source: { text: 'two' } },
        place: { ...wanted.place, remotePath: there('changes/place-2') },
        host: { ...wanted.host, connection: { perDialTimeout: 11 } },
        moved: { ...wanted.moved, source: { file: 'second' } },
        trigger: { ...wanted.trigger, triggers: ['two'] },
      }),
    );
  });

  it('a changed content is copied', () => {
    expect(outcome.operations.content).toBe('update');
    expect(textAt(there('changes/content'))).toBe('two');
  });
  it('a changed path is copied to, and what lies at the old one stays', () => {
    expect(textAt(there('changes/place-2'))).toBe('one');
    expect(textAt(there('changes/place'))).toBe('edited');
  });
  it('another connection is an update that copies nothing', () => {
    expect(outcome.operations.host).toBe('update');
    expect(textAt(there('changes/host'))).toBe('edited');
  });
  it('the same content from another file is no change', () => {
    expect(outcome.operations.moved).toBe('same');
    expect(textAt(there('changes/moved'))).toBe('edited');
  });
  it('a changed trigger copies again', () => {
    expect(outcome.operations.trigger).toMatch(/replace/);
    expect(textAt(there('changes/trigger'))).toBe('one');
  });
  it('a destroy leaves the files', async () => {
    expect((await used.project.destroy()).failed).toBe(false);
    expect(textAt(there('changes/content'))).toBe('two');
  });
});

describe('what it refuses', () => {
  it('a text into a folder, a folder onto a file, what is not allowed; and keeps nothing of it', async () => {
    mkdirSync(there('refuses'), { recursive: true });
    writeFileSync(there('file'), 'file');
    const outcome = await used.project.up(
      copies({
        text: { source: { text: 'text' }, remotePath: there('refuses') },
        folder: { source: { folder: here('folder') }, remotePath: there('file') },
        nowhere: { source: { text: 'text' }, remotePath: '/proc/nowhere' },
      }),
      '--continue-on-error',
    );
    expect(outcome.failed).toBe(true);
    for (const name of ['text', 'folder', 'nowhere']) expect(used.project.outputsOf(name)).toBeUndefined();
    expect(outcome.text).toContain(
      `remote path ${there('refuses')} is a directory; when using a text asset, remotePath must be a file path`,
    );
    expect(textAt(there('file'))).toBe('file');
  });
});
