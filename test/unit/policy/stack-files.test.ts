import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { judgedStackFiles } from '../../../policy/stack-files.ts';
import { completedFile, operatorFile } from '../../fixtures/operator-files.ts';

const project = fileURLToPath(new URL('../../..', import.meta.url));
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'slot-policy-'));
  for (const data of ['models', 'images'])
    cpSync(join(project, data), join(folder, data), { recursive: true });
  mkdirSync(join(folder, 'experiments'));
  write('dankserver', completedFile('dankserver'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(stack: string, text: string): void {
  writeFileSync(join(folder, `Pulumi.${stack}.yaml`), text);
}

function judged(stack: string) {
  const found = judgedStackFiles(folder).find((file) => file.stack === stack.split('/').at(-1));
  if (found === undefined) throw new Error(`${stack} was not judged`);
  return found;
}

const faulty = operatorFile('glm-w4a16').replace('kvCacheDtype: auto', 'kvCacheDtype: fp8');

describe('the stack files as they lie in the repository', () => {
  const verdicts = judgedStackFiles(project);

  it.each(verdicts.filter(({ isExperiment }) => !isExperiment))(
    '$stack is not refused',
    ({ isGood, details }) => {
      expect({ isGood, details: isGood ? [] : details }).toEqual({ isGood: true, details: [] });
    },
  );

  it.each([
    ['glm-mtp4', 'glm-offloaded-mtp'],
    ['glm-dflash2', 'dflash-drafter'],
    ['glm-compile', 'compile-changelist'],
  ])('the experiment %s is refused by the rule that the record established', (stack, rule) => {
    expect(verdicts.find((file) => file.stack === stack)?.verdict).toMatch(
      new RegExp(`^refused by .*${rule}`),
    );
  });

  it('the shape in production says why it is excepted', () => {
    const { verdict = '', details = [] } = verdicts.find(({ stack }) => stack === 'qwen-fp8-mtp4') ?? {};
    expect(verdict).toContain('excepted from');
    expect(details.join('\n')).toContain('excepted because:');
  });
});

describe('a stack file', () => {
  it('is good where no rule refuses it', () => {
    write('glm', completedFile('glm-w4a16'));
    expect(judged('glm').isGood).toBe(true);
  });

  it('is not where one does', () => {
    write('glm', faulty);
    expect(judged('glm')).toMatchObject({
      isGood: false,
      verdict: expect.stringMatching(/^refused by glm-kv/),
    });
  });

  it('is where it is excepted with a reason, which is told', () => {
    write(
      'glm',
      faulty.replace(
        '    payload:',
        '    exceptions:\n      glm-kv-cache-fp8: a decode op exists now\n    payload:',
      ),
    );
    const { isGood, verdict, details } = judged('glm');
    expect(isGood).toBe(true);
    expect(verdict).toContain('excepted from glm-kv-cache-fp8');
    expect(details.join('\n')).toContain('a decode op exists now');
  });

  it('is not where it is excepted from a rule that holds for every shape', () => {
    write(
      'glm',
      faulty.replace(
        '    payload:',
        '    exceptions:\n      no-secret-in-unit: it is only mine\n    payload:',
      ),
    );
    const { isGood, details } = judged('glm');
    expect(isGood).toBe(false);
    expect(details.join('\n')).toMatch(/no-secret-in-unit.*holds for every shape/s);
  });

  it('tells of an exception that is not needed', () => {
    const text = operatorFile('glm-w4a16');
    write('glm', text.replace('    payload:', '    exceptions:\n      expert-prefetch: never\n    payload:'));
    expect(judged('glm').verdict).toContain('idle exceptions expert-prefetch');
  });

  it('is not where it is not valid', () => {
    write('glm', operatorFile('glm-w4a16').replace('maxSequences', 'maxSequence'));
    expect(judged('glm')).toMatchObject({ isGood: false, verdict: 'not valid' });
  });

  it('of a host is not where its key is none', () => {
    write('dankserver', completedFile('dankserver').replace('ssh-ed25519', 'ssh-ed25519x'));
    expect(judged('dankserver').isGood).toBe(false);
  });
});

describe('an experiment', () => {
  const experiment = (text: string) => writeFileSync(join(folder, 'experiments', 'Pulumi.x.yaml'), text);

  it.each([
    ['that a rule refuses', faulty, /^refused by glm-kv/],
    ['that none refuses', completedFile('glm-w4a16'), /^(?!refused)/],
  ])('%s is good: it is there to be told of', (_what, text, verdict) => {
    experiment(text);
    expect(judged('x')).toMatchObject({ isGood: true, verdict: expect.stringMatching(verdict) });
  });

  it('that is not valid is not good', () => {
    experiment(completedFile('glm-w4a16').replace('kvCacheDtype:', 'kvCacheTyp:'));
    expect(judged('x')).toMatchObject({ isGood: false, verdict: 'not valid' });
  });
});

describe('npm run policy', () => {
  const program = fileURLToPath(new URL('../../../policy/stack-files.ts', import.meta.url));
  const run = (on: string) => spawnSync(process.execPath, [program, on], { encoding: 'utf8' });

  it('prints a line for each stack and ends well where all is as it must be', () => {
    const { status, stdout } = run(project);
    for (const stack of ['dankserver', 'glm-w4a16', 'glm-mtp4']) {
      expect(stdout).toMatch(new RegExp(`^(?:passes|experiment) +${stack} `, 'm'));
    }
    expect(status).toBe(0);
  });

  it('fails on a shape that is refused, and says by which rule and why', () => {
    write('glm', faulty);
    const { status, stdout } = run(folder);
    expect(status).toBe(1);
    expect(stdout).toMatch(/^FAILS +glm +refused by glm-kv-cache-fp8/m);
    expect(stdout).toContain('why: ');
  });

  it('fails where there is nothing to judge', () => {
    expect(run(join(folder, 'experiments')).status).toBe(1);
  });
});
