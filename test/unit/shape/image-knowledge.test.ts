import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { imageFiles } from '../../../components/image-files.ts';
import { loadImageKnowledge } from '../../../shape/configuration.ts';
import { commandLines } from '../../../shape/engines/engine.ts';
import {
  type ImageKnowledge,
  imageFacts,
  knowledgeOf,
  type NamedImageKnowledge,
} from '../../../shape/engines/image-knowledge.ts';
import { faultsOf } from '../../fixtures/problems.ts';

const folder = mkdtempSync(join(tmpdir(), 'images-'));
afterAll(() => rmSync(folder, { recursive: true }));

const text = `digest: 'sha256:da4029666'
engine: vllm
source: a test
taken: '2026-11-29'
complete: false
flags:
  --seed: {takes: value}
  --max-num-seqs: {takes: value}
  --expert-lanes: {takes: value, aliases: [--expert-gather-lanes]}
  --dtype: {takes: value, choices: [auto, half]}
toolParsers: [glm45, glm47]
reasoningParsers: [glm47]
`;

const load = (changed: string): ImageKnowledge => loadImageKnowledge('images/x.yaml', changed);
const named = (name: string, digest: string): NamedImageKnowledge => ({
  name,
  knowledge: { ...load(text), digest },
});

describe('a file of images/', () => {
  it.each([
    ['a digest that is none', ["'sha256:da4029666'", 'latest'], 'digest must be sha256:'],
    ['a digest of too few digits', ['da4029666', 'da4'], 'digest must be sha256:'],
    ['an engine that there is not', ['engine: vllm', 'engine: sglang'], 'engine must be'],
    ['a day that is none', ['2026-11-29', '29.11.2026'], 'taken must be a day'],
    ['a day that the calendar does not have', ['2026-11-29', '2026-02-30'], 'taken must be a day'],
    ['a month that the calendar does not have', ['2026-11-29', '2026-13'], 'taken must be a day'],
    ['a day with a time', ['2026-11-29', '2026-11-29T00:00'], 'taken must be a day'],
    ['a flag without dashes', ['--seed', 'seed'], 'flags.seed must be a flag'],
    ['a kind of value that there is not', ['{takes: value}', '{takes: number}'], 'takes must be'],
    ['no choice', ['choices: [auto, half]', 'choices: []'], 'choices must not be empty'],
    [
      'a key that is not known',
      ['complete: false', 'complete: false\npaser: []'],
      'paser is not a known key',
    ],
    ['a word that readers type differently', ['choices: [auto, half]', 'choices: [on, off]'], 'choices[0]'],
    ['no source', ['source: a test\n', ''], 'source is required'],
  ])('is refused with %s', (_what, [from = '', to = ''], said) => {
    expect(faultsOf(() => load(text.replace(from, to)))).toContainEqual(expect.stringContaining(said));
  });

  it.each(["'2026-11-29'", "'2028-02-29'", "'2026-10'"])('may be taken on %s', (taken) => {
    expect(faultsOf(() => load(text.replace("'2026-11-29'", taken)))).toEqual([]);
  });

  it('is corrected where it lies: it is no configuration of Pulumi', () => {
    for (const [from, to] of [
      ["'2026-11-29'", 'yesterday'],
      ['engine: vllm', 'engine: sglang'],
      ['complete: false', 'complete: perhaps'],
      ['toolParsers: [glm45, glm47]', 'toolParsers: glm45'],
      ['source: a test\n', ''],
    ] as const) {
      const attempt = (): unknown => load(text.replace(from, to));
      expect(attempt).toThrow(/images\/x\.yaml/);
      expect(attempt).not.toThrow(/pulumi/i);
    }
  });

  it.each(['', '[]', 'null', '- x', '{'])('is refused as %j', (content) => {
    expect(faultsOf(() => load(content))).not.toEqual([]);
  });
});

describe('the files of a project', () => {
  it('name what the record names of its image, and no more than that', () => {
    const [record] = imageFiles(join(import.meta.dirname, '../../..')).filter(
      ({ name }) => name === 'tcclaviger-vllm',
    );
    expect(record?.knowledge).toMatchObject({ digest: 'sha256:da4029666', complete: false });
    expect(record?.knowledge.toolParsers).toEqual(['glm45', 'glm47']);
    expect(record?.knowledge.flags).not.toHaveProperty('--seed');
  });

  it('must not speak of one image twice', () => {
    const project = join(folder, 'twice');
    mkdirSync(join(project, 'images'), { recursive: true });
    for (const name of ['a', 'b']) writeFileSync(join(project, 'images', `${name}.yaml`), text);
    expect(faultsOf(() => imageFiles(project))).toEqual(['digest must not be that of images/a.yaml']);
  });

  it('may be none', () => {
    expect(imageFiles(join(folder, 'none'))).toEqual([]);
  });
});

describe('what is known of an image', () => {
  const digest = `sha256:da4029666${'0'.repeat(55)}`;
  const all = [named('record', 'sha256:da4029666'), named('learnt', digest), named('other', 'sha256:ffff')];

  it('is what names most of its digest', () => {
    expect(knowledgeOf(all, digest)?.name).toBe('learnt');
    expect(knowledgeOf(all.toReversed(), digest)?.name).toBe('learnt');
    expect(knowledgeOf(all, `sha256:da4029666${'1'.repeat(55)}`)?.name).toBe('record');
  });

  it('is nothing where no file names its digest', () => {
    expect(knowledgeOf(all, `sha256:${'9'.repeat(64)}`)).toBeUndefined();
    expect(knowledgeOf([], digest)).toBeUndefined();
  });

  it('goes into a release as far as it bears on the arguments', () => {
    const facts = imageFacts(named('record', digest), [
      ...['/model', '--seed=1', '--expert', '4', '--dtpye', 'auto'],
      ...['--tool-call-parser', 'glm46', '--reasoning-parser', 'glm47'],
    ]);
    expect(Object.keys(facts.flags)).toEqual(['--seed', '--expert-lanes', '--dtype']);
    expect(facts).toMatchObject({ name: 'record', complete: false, reasoningParsers: ['glm47'] });
    expect(facts.toolParsers).toHaveLength(1);
  });

  it('bears on nothing where there are no arguments', () => {
    expect(imageFacts(named('record', digest), [])).toMatchObject({ flags: {}, toolParsers: [] });
  });
});

describe('what is known of the engines', () => {
  it.each(Object.entries(commandLines))('names no flag of %s twice', (_kind, { flags }) => {
    const spellings = flags.flatMap(({ name, aliases }) => [name, ...aliases]);
    expect(spellings).toEqual([...new Set(spellings)]);
  });

  it.each(Object.entries(commandLines))('has a source for each changed flag of %s', (_kind, { changed }) => {
    for (const { names, source, since, instead } of changed) {
      expect(names.every((name) => /^--?[a-z]/.test(name))).toBe(true);
      for (const said of [source, since, instead]) expect(said).toMatch(/\S{2}/);
    }
  });
});
