import { createPatch } from 'diff';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HostConfig } from '../../../shape/host.ts';
import { type PlanInput, planRelease } from '../../../shape/plan.ts';
import { releaseIdOf, releaseSchema } from '../../../shape/release.ts';
import type { ShapeConfig } from '../../../shape/shape.ts';
import { readTemplates } from '../../../templates/templates.ts';
import { wordArbitrary } from '../../fixtures/hostile-words.ts';
import { shapeStacks, suppliedHost, suppliedShape } from '../../fixtures/operator-files.ts';
import { faultsOf as faultsOfAct } from '../../fixtures/problems.ts';

const host = suppliedHost();
const glm = suppliedShape('glm-w4a16');
const r9v = suppliedShape('r9v-q8_0');
const templates = readTemplates();

function plan(input: Partial<PlanInput> = {}) {
  return planRelease({ host, shape: glm, stack: 'glm-w4a16', templates, patches: new Map(), ...input });
}

function withEngine<T extends ShapeConfig>(shape: T, changes: object): T {
  return { ...shape, engine: { ...shape.engine, ...changes } };
}

function faultsOf(input: Partial<PlanInput>): readonly string[] {
  return faultsOfAct(() => plan(input));
}

describe('a release', () => {
  it.each(shapeStacks)('of %s is what the host side accepts', (stack) => {
    const release = plan({ shape: suppliedShape(stack), stack });
    expect(releaseSchema.parse(release)).toEqual(release);
  });

  it('is the same for the same input', () => {
    expect(releaseIdOf(plan())).toBe(releaseIdOf(plan()));
  });

  it('does not depend on the order in which the environment is written', () => {
    const environment = { A: '1', B: '2' };
    const turned = { B: '2', A: '1' };
    expect(plan({ shape: { ...glm, environment } })).toEqual(
      plan({ shape: { ...glm, environment: turned } }),
    );
  });

  it('names the container by the short name, and by the stack where there is none', () => {
    const { shortName: _, ...nameless } = glm;
    expect(plan().container).toBe('frank-archon-glm');
    expect(plan({ shape: nameless }).container).toBe('frank-archon-glm-w4a16');
  });

  it('finds payload and mounts below the models root, and absolute ones where they are', () => {
    const mounts = [{ source: 'GLM-5.3-Flash-DFlash2', target: '/draft' }];
    expect(plan({ shape: { ...glm, mounts } }).unit).toContain(
      '--volume=/home/dank/models/GLM-5.3-Flash-DFlash2:/draft:ro',
    );
    expect(
      plan({ shape: { ...glm, payload: { folder: '/trash/glm', verify: 'inventory' } } }).payload.folder,
    ).toBe('/trash/glm');
  });

  it('names a secret by variable and version, and another version is another engine', () => {
    const withVersion = (version: string) => plan({ shape: { ...glm, secrets: { HF_TOKEN: { version } } } });
    expect(withVersion('1').unit).toContain('--secret=frank-archon-HF_TOKEN-1,type=env,target=HF_TOKEN');
    expect(withVersion('2').engineIdentity).not.toBe(withVersion('1').engineIdentity);
    expect(plan().unit).not.toContain('--secret');
  });

  it('does not run on fewer GPUs than the slot has, and asks nothing of a host that has none', () => {
    expect(faultsOf({ host: { ...host, gpus: ['0000:03:00.0'] } })).toEqual([
      'slot:shape.engine.tensorParallel must not be more than the 1 of slot:host.gpus',
    ]);
    expect(faultsOf({ host: { ...host, gpus: [] } })).toEqual([]);
  });

  it('does not take a variable that is both plain and secret', () => {
    const secrets = { PYTORCH_CUDA_ALLOC_CONF: { version: '1' } };
    expect(faultsOf({ shape: { ...glm, secrets } })).toEqual([
      'slot:shape.secrets.PYTORCH_CUDA_ALLOC_CONF must not be in slot:shape.environment as well',
    ]);
  });

  it('serves the public name as well, once', () => {
    expect(plan().servedNames).toEqual(['glm53-flash', 'wire']);
    expect(plan({ host: { ...host, publicName: 'glm53-flash' } }).servedNames).toEqual(['glm53-flash']);
  });

  it('carries the record of GLM to the letter', () => {
    expect(plan().arguments.join(' ')).toBe(
      '/model --host 0.0.0.0 --port 7770 --served-model-name glm53-flash wire --tensor-parallel-size 2 ' +
        '--max-model-len 131072 --max-num-seqs 2 --max-num-batched-tokens 2048 --gpu-memory-utilization 0.98 ' +
        '--kv-cache-dtype auto --enable-expert-offload --expert-precise-memory --enable-prefix-caching ' +
        '--enable-auto-tool-choice --tool-call-parser glm47 --reasoning-parser glm47',
    );
    expect(plan().memlock).toBe('infinity');
    expect(plan().memoryGateBytes).toBe(230 * 2 ** 30);
  });

  it('says both ways whether prefixes are cached', () => {
    expect(plan({ shape: withEngine(glm, { prefixCaching: false }) }).arguments).toContain(
      '--no-enable-prefix-caching',
    );
  });

  it('gives the speculative configuration as the JSON that was configured, whatever it holds', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (speculative) => {
        const { arguments: words } = plan({ shape: withEngine(glm, { speculative }) });
        const json = words[words.indexOf('--speculative-config') + 1] ?? '';
        expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(speculative)));
      }),
    );
  });
});

describe('the checks of a release', () => {
  it('ask for names, for two completions in a row, each name once, and for a tool call', () => {
    expect(
      plan().checks.map((check) =>
        'servedName' in check ? `${check.kind} ${check.servedName}` : check.kind,
      ),
    ).toEqual(['models', 'completion glm53-flash', 'completion wire', 'tool-call glm53-flash']);
  });

  it('ask for two completions also where there is one name', () => {
    const { publicName: _, ...nameless } = host;
    const kinds = plan({ host: nameless }).checks.map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'completion')).toHaveLength(2);
  });

  it('ask for no tool call where the engine has no tools', () => {
    const { toolParser: _, ...engine } = glm.engine as ShapeConfig['engine'] & { kind: 'vllm' };
    expect(plan({ shape: { ...glm, engine } }).checks.map(({ kind }) => kind)).not.toContain('tool-call');
  });

  it.each([
    ['vllm', glm, 'reasoning'],
    ['r9v', r9v, 'reasoning_content'],
  ])('look for the thinking where %s puts it', (_kind, shape, reasoningField) => {
    expect(plan({ shape }).checks).toContainEqual(
      expect.objectContaining({ kind: 'completion', reasoningField }),
    );
  });
});

describe('the engine identity', () => {
  const identity = plan().engineIdentity;

  it('stands on the container', () => {
    expect(plan().unit).toContain(`--label=slot.identity=${identity} `);
  });

  it.each<[string, Partial<PlanInput>]>([
    ['a deadline', { shape: { ...glm, deadlines: { ...glm.deadlines, boot: glm.deadlines.check } } }],
    ['the memory gate', { host: { ...host, memoryGate: undefined } as HostConfig }],
    ['the login', { host: { ...host, user: 'root' } }],
    ['the name of the stack', { stack: 'glm-copy' }],
    ['a comment', { templates: { ...templates, service: `# why\n${templates.service}` } }],
    [
      'a description',
      { templates: { ...templates, service: templates.service.replace(' serving ', ' runs ') } },
    ],
  ])('stays with another value of %s', (_what, input) => {
    expect(plan(input).engineIdentity).toBe(identity);
  });

  it.each<[string, Partial<PlanInput>]>([
    ['the environment', { shape: { ...glm, environment: {} } }],
    ['an argument', { shape: withEngine(glm, { maxSequences: 3 }) }],
    [
      'the image',
      { shape: withEngine(glm, { image: { ...glm.engine.image, digest: `sha256:${'1'.repeat(64)}` } }) },
    ],
    ['a limit', { shape: { ...glm, limits: { ...glm.limits, pids: 1 } } }],
    ['the payload', { shape: { ...glm, payload: { folder: 'other', verify: 'inventory' } } }],
    ['a device', { host: { ...host, deviceFiles: [] } }],
    ['the public name', { host: { ...host, publicName: 'other' } }],
    ['the port', { host: { ...host, port: 7771 } }],
    [
      'a directive',
      { templates: { ...templates, service: templates.service.replace('RestartSec=10', 'RestartSec=11') } },
    ],
  ])('changes with %s', (_what, input) => {
    expect(plan(input).engineIdentity).not.toBe(identity);
  });
});

describe('an R9V engine', () => {
  const withArguments = (...words: string[]) => withEngine(r9v, { arguments: words });

  it('gets its placeholders filled and all else as it is', () => {
    const shape = withArguments(
      '{payload}',
      '{port}',
      '{state:q8xl}',
      '{servedNames}',
      '{maxModelLength}',
      '{"a":1}',
      '{x}',
    );
    expect(plan({ shape }).arguments).toEqual([
      '/model/Qwen3.8-Flash-Next-Q8_0-00001-of-00004.gguf',
      '7770',
      '/state/q8xl',
      'qwen38-flash-next,wire',
      '131072',
      '{"a":1}',
      '{x}',
    ]);
  });

  it('gets what fills a placeholder without a second look', () => {
    const shape = withEngine(withArguments('{payload}', '{port}', '{servedName}', '{publicName}'), {
      servedName: '{port}$&',
    });
    expect(plan({ shape }).arguments).toEqual([
      '/model/Qwen3.8-Flash-Next-Q8_0-00001-of-00004.gguf',
      '7770',
      '{port}$&',
      'wire',
    ]);
  });

  it('is refused with a state that the shape does not have', () => {
    expect(
      faultsOf({ shape: withArguments('{servedNames}', '{state:other}', '{port}', '{payload}') }),
    ).toEqual(['slot:shape.engine.arguments[1] must not use {state:other}, which has no value']);
  });

  it('is refused when it would not serve the public name', () => {
    expect(faultsOf({ shape: withArguments('--alias', '{servedName}', '{port}', '{payload}') })).toEqual([
      'slot:shape.engine.arguments must serve wire as well: the host asks for it',
    ]);
  });

  it('is refused with a public name that the host does not have', () => {
    const { publicName: _, ...nameless } = host;
    expect(
      faultsOf({ host: nameless, shape: withArguments('{publicName}', '{port}', '{payload}') }),
    ).toHaveLength(1);
  });
});

describe('a shape and a host', () => {
  it.each<[string, Partial<PlanInput>, string]>([
    ['the host is another one', { host: { ...host, name: 'other' } }, 'slot:shape.host must be other'],
    [
      'the stack is no name for a container',
      { shape: { ...glm, shortName: 'GLM 5' } },
      'slot:shape.shortName',
    ],
    [
      'a state folder is outside the state roots',
      { shape: { ...r9v, state: { q8xl: '/home/dank' } } },
      'state root',
    ],
    ['a state folder is the state root', { shape: { ...r9v, state: { q8xl: '.' } } }, 'state root'],
    ['the host has no state roots', { host: { ...host, stateRoots: [] }, shape: r9v }, 'it declares none'],
    [
      'two things are mounted at one place',
      { shape: { ...glm, mounts: [{ source: 'a', target: '/model' }] } },
      '/model',
    ],
  ])('do not fit when %s', (_what, input, fault) => {
    expect(faultsOf(input)).toContainEqual(expect.stringContaining(fault));
  });
});

describe('patches', () => {
  const target = '/usr/lib/python3.12/site-packages/vllm/models/model.py';
  const a = 'a'.repeat(64);
  const b = 'b'.repeat(64);
  const c = 'c'.repeat(64);
  const diff = createPatch('vllm/models/model.py', 'old\n', 'new\n');
  const header = (base: string, patched: string): string =>
    `Target: ${target}\nBase-SHA256: ${base}\nPatched-SHA256: ${patched}\n\n`;
  const patched = (patches: readonly string[], texts: Record<string, string>): Partial<PlanInput> => ({
    shape: { ...glm, patches: [...patches] },
    patches: new Map(Object.entries(texts)),
  });
  const one = (text: string): Partial<PlanInput> => patched(['1.patch'], { '1.patch': header(a, b) + text });

  it('of one file are applied in their order, from the first base to the last result', () => {
    const texts = { '1.patch': header(a, b) + diff, '2.patch': header(b, c) + diff };
    const release = plan(patched(['1.patch', '2.patch'], texts));
    expect(release.patches).toEqual([
      {
        target,
        baseSha256: a,
        patchedSha256: c,
        diffs: [
          { name: '1.patch', text: texts['1.patch'] },
          { name: '2.patch', text: texts['2.patch'] },
        ],
      },
    ]);
    expect(release.unit).toContain(`--volume=/var/lib/slot/frank-archon/patched/${c}/model.py:${target}:ro`);
  });

  it.each([
    ['git diff', diff.replace('--- vllm', '--- a/vllm').replace('+++ vllm', '+++ b/vllm')],
    ['diff -u with times', diff.replaceAll('model.py\t', 'model.py\t2026-10-01 10:00:00')],
    ['a person with evidence', `Why: measured.\n\n${diff}`],
  ])('are accepted as %s writes them', (_what, text) => {
    expect(faultsOf(one(text))).toEqual([]);
  });

  it.each([
    ['prose', 'Change the model so that it is faster.\n'],
    [
      'prose with pseudo-hunks',
      '--- a/vllm/models/model.py\n+++ b/vllm/models/model.py\n@@ in forward() @@\n- old\n+ new\n',
    ],
    ['a hunk cut short', diff.replace('+new\n', '')],
    ['a diff of another file', createPatch('vllm/models/other.py', 'old\n', 'new\n')],
    ['an absolute path outside', createPatch('/etc/passwd', 'old\n', 'new\n')],
    ['a path upwards', createPatch('../../model.py', 'old\n', 'new\n')],
    ['two files', diff + createPatch('vllm/models/other.py', 'old\n', 'new\n')],
    ['nothing', ''],
  ])('are refused when one is %s', (_what, text) => {
    expect(faultsOf(one(text))).toContainEqual(expect.stringContaining('slot:shape.patches[0]'));
  });

  it.each(['Target', 'Base-SHA256', 'Patched-SHA256'])('are refused without the line %s', (line) => {
    const text = (header(a, b) + diff).replace(new RegExp(`^${line}: .*$`, 'm'), '');
    expect(faultsOf(patched(['1.patch'], { '1.patch': text }))).toEqual([
      `slot:shape.patches[0] must say above its diff what it changes: "${line}:" is missing`,
    ]);
  });

  it('are refused when a file is missing or the order is wrong', () => {
    const first = header(a, b) + diff;
    expect(faultsOf(patched(['2.patch', '1.patch'], { '1.patch': first }))).toContainEqual(
      expect.stringContaining('patches[0] must be a file below patches/'),
    );
    const both = { '1.patch': first, '2.patch': header(b, c) + diff };
    expect(faultsOf(patched(['2.patch', '1.patch'], both))).toContainEqual(
      expect.stringContaining(`patches[1] must have Base-SHA256 ${c}`),
    );
  });
});

describe('whatever the operator configures', () => {
  it('gives a unit of the same lines: no value can begin a directive', () => {
    const lines = plan({ shape: { ...glm, environment: { A: '' } } }).unit.split('\n').length;
    fc.assert(
      fc.property(wordArbitrary, (word) => {
        expect(plan({ shape: { ...glm, environment: { A: word } } }).unit.split('\n')).toHaveLength(lines);
      }),
    );
  });
});
