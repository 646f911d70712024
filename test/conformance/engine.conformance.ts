import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { prepareToolchain } from '../../toolchain/prepare.ts';
import { createProject, type Wanted } from './project.ts';

let project: ReturnType<typeof createProject>;
beforeAll(async () => {
  project = createProject(await prepareToolchain());
});
afterAll(() => project.remove());

const file = (name: string) => path.join(project.folder, name);
const ran = () => (existsSync(file('ran')) ? readFileSync(file('ran'), 'utf8') : '');
const writing = (text: string): Wanted => ({
  resources: { command: { type: 'local.Command', args: { create: `echo ${text} >> ${file('ran')}` } } },
});

describe("a stack whose operator's files stay as they are", () => {
  const copy = () => file('copy.yaml');
  let before: string[];
  beforeAll(async () => {
    before = readdirSync(project.program);
    // Only `stack init` has no --config-file: it writes beside the Pulumi.yaml of the folder it is run in.
    mkdirSync(file('elsewhere'));
    copyFileSync(path.join(project.program, 'Pulumi.yaml'), path.join(file('elsewhere'), 'Pulumi.yaml'));
    await project.plain(['stack', 'init', 'case', '--no-select'], file('elsewhere'));
    writeFileSync(copy(), 'config: {}\n');
  });

  it('is previewed, updated, refreshed, destroyed and removed with a copy, which alone gets the salt', async () => {
    const withCopy = ['--stack=case', `--config-file=${copy()}`, '--non-interactive'];
    const done = await project.preview(writing('first'), `--config-file=${copy()}`);
    expect(done.failed).toBe(false);
    expect(readFileSync(copy(), 'utf8')).toContain('encryptionsalt');
    for (const words of [
      ['up', '--yes', '--skip-preview'],
      ['refresh', '--yes'],
      ['destroy', '--yes'],
    ]) {
      expect(await project.plain([...words, ...withCopy])).toMatchObject({ failed: false });
    }
    expect(readdirSync(project.program).filter((name) => !before.includes(name))).toEqual(['resources.json']);
  });

  it('keeps its file when it is removed with --preserve-config, and only then', async () => {
    const own = path.join(project.program, 'Pulumi.case.yaml');
    writeFileSync(own, 'config: {}\n');
    await project.plain(['stack', 'rm', 'case', '--yes', '--preserve-config']);
    expect(existsSync(own)).toBe(true);
    await project.plain(['stack', 'init', 'case', '--no-select'], file('elsewhere'));
    await project.plain(['stack', 'rm', 'case', '--yes']);
    expect(existsSync(own)).toBe(false);
  });
});

describe('a plan', () => {
  beforeAll(async () => {
    await project.init();
    await project.preview(writing('planned'), `--save-plan=${file('plan.json')}`);
  });

  it('refuses what it did not show, with nothing run', async () => {
    const outcome = await project.up(writing('other'), `--plan=${file('plan.json')}`);
    expect(outcome.failed).toBe(true);
    expect(outcome.text).toContain('violates plan: properties changed: ++create');
    expect(ran()).not.toContain('other');
  });

  it('lets pass what it showed', async () => {
    const outcome = await project.up(writing('planned'), `--plan=${file('plan.json')}`);
    expect(outcome.failed).toBe(false);
    expect(ran()).toContain('planned');
  });
});
