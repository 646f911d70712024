import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse, parseDocument } from 'yaml';
import { cacheHome } from '../../lab/vm/cache-owner.ts';
import { completedFile, shapeStacks } from '../fixtures/operator-files.ts';

const project = path.join(import.meta.dirname, '..', '..');

interface Step {
  readonly name?: string;
  readonly run?: string;
}

const workflow = parse(readFileSync(path.join(project, '.github', 'workflows', 'review.yml'), 'utf8')) as {
  readonly jobs: Readonly<Record<string, { readonly steps: readonly Step[] }>>;
};

/** Those that the suite itself is not part of. */
const steps = Object.values(workflow.jobs)
  .flatMap((job) => job.steps)
  .filter(({ name, run }) => run !== undefined && name !== 'Install' && name !== 'Tests');

describe('the workflow that reviews a change', () => {
  let checkout: string;

  beforeEach(async () => {
    checkout = mkdtempSync(path.join(tmpdir(), 'slot-review-'));
    const listed = await execa('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
      cwd: project,
    });
    for (const name of listed.stdout.split('\0').filter((file) => existsSync(path.join(project, file)))) {
      if (name !== '') cpSync(path.join(project, name), path.join(checkout, name));
    }
    symlinkSync(path.join(project, 'node_modules'), path.join(checkout, 'node_modules'));
    for (const stack of ['dankserver', ...shapeStacks]) writeStack(stack, []);
    // Nobody answers there, as none of the operator's hosts answers a machine that reviews.
    writeStack('dankserver', [
      [['slot:host', 'address'], '127.0.0.1'],
      [['slot:host', 'sshPort'], 9],
      [['slot:host', 'privateKeyPath'], '/the/operators/own'],
    ]);
  });
  afterEach(() => rmSync(checkout, { recursive: true, force: true }));

  it('has steps that this test runs', () => {
    expect(steps.map(({ name }) => name)).toEqual(['Rules', 'Plan', 'Patches', 'Preview']);
  });

  it('passes what is whole, with a static plan of every shape', async () => {
    writeStack('glm-w4a16', [
      [['slot:shape', 'secrets', 'HF_TOKEN'], { version: '1' }],
      [['slot:secrets', 'HF_TOKEN'], { secure: 'v1:of:another-passphrase' }],
    ]);
    const output = await runAll();
    for (const stack of shapeStacks) expect(output).toContain(`# ${stack}: release `);
    expect(output.match(/this is the static plan/g)).toHaveLength(shapeStacks.length);
    expect(output).toContain('HF_TOKEN=[secret]');
    expect(output).not.toContain('another-passphrase');
  });

  it.each<[string, string, Changes, string]>([
    [
      'a rule is broken',
      'Rules',
      [[['slot:shape', 'engine', 'kvCacheDtype'], 'fp8']],
      'rocm_aiter_mla_decode_fwd',
    ],
    ['a key is misspelt', 'Plan', [[['slot:shape', 'payload', 'foldr'], 'x']], 'did you mean folder?'],
  ])('fails where %s, in its step %s', async (_what, name, changes, told) => {
    writeStack('glm-w4a16', changes);
    const step = steps.find((candidate) => candidate.name === name);
    const { exitCode, all } = await run(step?.run ?? '');
    expect(exitCode, all).not.toBe(0);
    expect(all).toContain(told);
  });

  it('fails where a patch that no shape names yet is prose, in its step Patches', async () => {
    writeFileSync(
      path.join(checkout, 'patches', 'idea.patch'),
      'In model.py the loop should stop earlier.\n',
    );
    const step = steps.find(({ name }) => name === 'Patches');
    const { exitCode, all } = await run(step?.run ?? '');
    expect(exitCode, all).not.toBe(0);
    expect(all).toContain('FAULT idea.patch: ');
  });

  async function runAll(): Promise<string> {
    let output = '';
    for (const { name, run: commands = '' } of steps) {
      const { exitCode, all } = await run(commands);
      expect(exitCode, `${name}\n${all}`).toBe(0);
      output += all;
    }
    return output;
  }

  function run(commands: string) {
    return execa('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', commands], {
      cwd: checkout,
      reject: false,
      all: true,
      stdin: 'ignore',
      env: { XDG_CACHE_HOME: cacheHome() },
    });
  }

  function writeStack(stack: string, changes: Changes): void {
    const document = parseDocument(completedFile(stack));
    for (const [keys, value] of changes) document.setIn(['config', ...keys], value);
    writeFileSync(path.join(checkout, `Pulumi.${stack}.yaml`), document.toString());
  }
});

type Changes = readonly (readonly [keys: readonly string[], value: unknown])[];
