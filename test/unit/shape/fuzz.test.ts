import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import {
  ConfigurationError,
  draft,
  load,
  loadModel,
  openStackFile,
  openValues,
  type Problem,
  type StackFile,
} from '../../../shape/configuration.ts';
import { planRelease } from '../../../shape/plan.ts';
import { reviewOf } from '../../../shape/review.ts';
import { reviewText } from '../../../shape/review-text.ts';
import { readTemplates } from '../../../templates/templates.ts';
import { hostileWords } from '../../fixtures/hostile-words.ts';
import { completedFile, shapeStacks, suppliedHost, suppliedShape } from '../../fixtures/operator-files.ts';

/** A case takes 2 ms; on a machine with other work some of them wait. */
const longestMs = 5000;

vi.setConfig({ testTimeout: 120_000 });

const templates = readTemplates();
const host = suppliedHost();
const glm = suppliedShape('glm-w4a16');
const model = loadModel(
  'models/glm-5.3-flash.yaml',
  readFileSync(new URL('../../../models/glm-5.3-flash.yaml', import.meta.url), 'utf8'),
);

const patchName = 'glm53-dflash-01.patch';

const secrets = { HF_TOKEN: { secure: 'v1:abc:def' } };

/** Keys that the operator's files leave out: damage must be able to meet them too. */
const rarelyWritten = {
  mounts: [{ source: 'GLM-5.3-Flash-DFlash2', target: '/draft' }],
  patches: [patchName],
  secrets: { HF_TOKEN: { version: '1' } },
  exceptions: { 'nccl-protocol': 'to be damaged' },
  limits: { memlock: '64 MiB', pids: 4096 },
  deadlines: { drain: '0 s', stop: '1 min', boot: '20 min', check: '3 min', settle: '10 s' },
};

const rareOfEngine = {
  vllm: {
    ...{ kvCacheMemory: '2 GiB', speculative: { method: 'mtp', num_speculative_tokens: 4 }, ipc: 'host' },
    ...{ shutdownTimeout: '10 s', telemetry: { statistics: false }, extraArguments: ['--seed', '1'] },
  },
  r9v: { healthPath: '/health', gpuMemoryUtilization: 0.5, ipc: 'private' },
};

const patch = [
  'Target: /opt/engine/model.py',
  `Base-SHA256: ${'0'.repeat(64)}`,
  `Patched-SHA256: ${'1'.repeat(64)}`,
  ...['--- a/opt/engine/model.py', '+++ b/opt/engine/model.py', '@@ -1 +1 @@', '-a', '+b', ''],
].join('\n');

/** What is damaged: the operator's files with all that he supplies, also with the keys that they leave out. */
const whole = ['dankserver', ...shapeStacks].flatMap((stack) => {
  const content = parse(completedFile(stack)) as Content;
  const shape = content.config['slot:shape'];
  if (shape === undefined) return [{ stack, content }];
  const engine = { ...rareOfEngine[shape.engine.kind], ...shape.engine };
  const fuller = { 'slot:shape': { ...rarelyWritten, ...shape, engine }, 'slot:secrets': secrets };
  return [
    { stack, content },
    { stack, content: { config: fuller } },
  ];
});

/** As the files are written, a key a line; a library would take as long for it as reading takes. */
function written(content: unknown, indent = ''): string {
  if (content === null || typeof content !== 'object' || Object.keys(content).length === 0) {
    return ` ${JSON.stringify(content) ?? '~'}\n`;
  }
  const deeper = `${indent}  `;
  const lines = Array.isArray(content)
    ? content.map((item) => `${deeper}-${written(item, `${deeper}  `)}`)
    : Object.entries(content).map(([key, value]) => `${indent}${keyText(key)}:${written(value, deeper)}`);
  return `\n${lines.join('')}`;
}

function keyText(key: string): string {
  return /^[A-Za-z][\w:-]*$/.test(key) ? key : JSON.stringify(key);
}

interface Content {
  readonly config: { readonly 'slot:shape'?: { readonly engine: { readonly kind: 'vllm' | 'r9v' } } };
}

const oddValues: readonly unknown[] = [
  ...[
    null,
    true,
    false,
    0,
    -1,
    1.5,
    -0,
    1e-7,
    1e21,
    2 ** 53,
    Number.MAX_VALUE,
    '',
    ' ',
    'x',
    [],
    {},
    [null],
    { a: 1 },
  ],
  ...[
    'infinity',
    '64 MiB',
    '-1 MiB',
    '20 min',
    '9999999999999 TiB',
    '0 s',
    '1e3 s',
    '8000O',
    '0x1F40',
    '1_000',
  ],
  ...[
    '../x',
    '/',
    '//',
    '/a:b',
    'a,b',
    'a\nb',
    'a\0b',
    '\ud800',
    '\u0085',
    '🤖'.repeat(50),
    'x'.repeat(5000),
  ],
  ...[
    '{payload}',
    '{state:constructor}',
    '{servedNames}',
    '--port',
    '--',
    '-',
    '[0]',
    'slot:shape',
    '[DEFAULT]',
  ],
  ...[{ secure: 'v1:x' }, { secure: 3 }, { kind: 'vllm' }, { kind: 'r9v' }, { kind: 'constructor' }],
  ...[
    'dankserver',
    'sha256:',
    `sha256:${'f'.repeat(64)}`,
    'docker.io/a/b',
    'ssh-ed25519 AAAA',
    '0000:03:00.0',
  ],
  ...hostileWords,
];
const oddKeys = [
  '__proto__',
  'constructor',
  'toString',
  'kind',
  'host',
  '',
  '0',
  'a.b',
  'a b',
  'é',
  'secure',
  'A_B',
  '<<',
];

/** A change of the content: of the value at a place, counted from the top. */
type Change = (content: unknown, place: number, pick: number) => unknown;

const changes: Readonly<Record<string, Change>> = {
  drop: (content, place) => at(content, place, (parent, key) => remove(parent, key)),
  replace: (content, place, pick) =>
    at(content, place, (parent, key) => set(parent, key, odd(oddValues, pick))),
  retype: (content, place) =>
    at(content, place, (parent, key) => set(parent, key, retyped(get(parent, key)))),
  nest: (content, place, pick) =>
    at(content, place, (parent, key) => {
      const value = get(parent, key);
      set(parent, key, pick % 2 === 0 ? [value] : { [odd(oddKeys, pick)]: value });
    }),
  deepen: (content, place, pick) =>
    at(content, place, (parent, key) => {
      let deep: unknown = get(parent, key);
      for (let level = 0; level < pick % 60; level += 1) deep = level % 2 === 0 ? [deep] : { a: deep };
      set(parent, key, deep);
    }),
  rename: (content, place, pick) =>
    at(content, place, (parent, key) => {
      const value = get(parent, key);
      remove(parent, key);
      set(
        parent,
        typeof key === 'number' ? key : odd([...oddKeys, `${key}s`, key.slice(1), key.toUpperCase()], pick),
        value,
      );
    }),
  swap: (content, place, pick) =>
    at(content, place, (one, key) =>
      at(content, pick, (other, otherKey) => {
        const value = get(one, key);
        set(one, key, structuredClone(get(other, otherKey)));
        set(other, otherKey, structuredClone(value));
      }),
    ),
  copy: (content, place, pick) =>
    at(content, place, (one, key) =>
      at(content, pick, (other) => {
        if (Array.isArray(other)) other.push(structuredClone(get(one, key)));
        else set(other, String(key), structuredClone(get(one, key)));
      }),
    ),
};

type Parent = unknown[] | Record<string, unknown>;

/** Acts on the value at a place of the content, counted through all maps and lists. */
function at(content: unknown, place: number, act: (parent: Parent, key: string | number) => void): unknown {
  const places: [Parent, string | number][] = [];
  const collect = (parent: unknown): void => {
    if (parent === null || typeof parent !== 'object') return;
    const keys = Array.isArray(parent) ? [...parent.keys()] : Object.keys(parent);
    for (const key of keys) {
      places.push([parent as Parent, key]);
      collect(get(parent as Parent, key));
    }
  };
  collect(content);
  const found = places[place % Math.max(1, places.length)];
  if (found !== undefined) act(...found);
  return content;
}

function get(parent: Parent, key: string | number): unknown {
  return Object.getOwnPropertyDescriptor(parent, key)?.value;
}

/** Also where the key is `__proto__`. */
function set(parent: Parent, key: string | number, value: unknown): void {
  Object.defineProperty(parent, key, { value, enumerable: true, configurable: true, writable: true });
}

function remove(parent: Parent, key: string | number): void {
  if (Array.isArray(parent)) parent.splice(Number(key), 1);
  else delete parent[key];
}

function odd<T>(choices: readonly T[], pick: number): T {
  return choices[pick % choices.length] as T;
}

function retyped(value: unknown): unknown {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return Number.isNaN(Number(value)) ? [...value].slice(0, 20) : Number(value);
  if (Array.isArray(value)) return Object.fromEntries(value.entries());
  return value === null ? {} : Object.entries(value as object);
}

/** Damage of the text, as an editor, a merge or a disk does it. */
type Damage = (text: string, place: number, pick: number) => string;

const oddTexts = [
  ...[
    '\t',
    ' ',
    '  ',
    '\r',
    '\n',
    '\r\n',
    '\0',
    '\u0007',
    '\u0085',
    '\u2028',
    '\ufeff',
    '\ud800',
    '�',
    'é',
    '🤖',
  ],
  ...[
    ':',
    ': ',
    '-',
    '- ',
    '#',
    ' #',
    '&a ',
    '*a',
    '*',
    '&',
    '!!str ',
    '!x ',
    '!!binary ',
    '<<: ',
    '? ',
    '|',
    '>',
    '%',
  ],
  ...[
    '{',
    '}',
    '[',
    ']',
    ',',
    '"',
    "'",
    '@',
    '`',
    '---\n',
    '...\n',
    '%YAML 1.1\n---\n',
    '\\',
    '~',
    '=',
    '0600',
    '1e999',
  ],
  ...[
    '<<<<<<< HEAD\n',
    '=======\n',
    '[[[[[[[[',
    '99999999999999999999',
    '0x',
    '1_0',
    '__proto__: x\n',
    'null: x\n',
  ],
];

const damages: Readonly<Record<string, Damage>> = {
  insert: (text, place, pick) => spliced(text, place, 0, odd(oddTexts, pick)),
  overwrite: (text, place, pick) => spliced(text, place, 1 + (pick % 3), odd(oddTexts, pick)),
  flip: (text, place, pick) => {
    const bytes = Buffer.from(text);
    const index = place % Math.max(1, bytes.length);
    if (bytes.length > 0) bytes[index] = (bytes[index] ?? 0) ^ (1 << (pick % 8));
    return bytes.toString();
  },
  cut: (text, place) => text.slice(0, place % (text.length + 1)),
  indent: (text, place, pick) =>
    ofLine(text, place, (line) => [`${' '.repeat(pick % 7)}${line.slice(pick % 3)}`]),
  lose: (text, place) => ofLine(text, place, () => []),
  double: (text, place) => ofLine(text, place, (line) => [line, line]),
  move: (text, place, pick) => {
    const lines = text.split('\n');
    const [line = ''] = lines.splice(place % lines.length, 1);
    lines.splice(pick % (lines.length + 1), 0, line);
    return lines.join('\n');
  },
  grow: (text, place, pick) => text.replace(/\d+/, (digits) => digits.repeat(1 + ((place + pick) % 40))),
  unquote: (text) => text.replaceAll(/["']/g, ''),
  end: (text) => text.replaceAll('\n', '\r\n'),
};

function spliced(text: string, place: number, remove: number, insert: string): string {
  const index = place % (text.length + 1);
  return text.slice(0, index) + insert + text.slice(index + remove);
}

function ofLine(text: string, place: number, become: (line: string) => string[]): string {
  const lines = text.split('\n');
  const index = place % lines.length;
  return lines.flatMap((line, at) => (at === index ? become(line) : [line])).join('\n');
}

interface Step {
  readonly kind: string;
  readonly place: number;
  readonly pick: number;
}

const step = (kinds: readonly string[]): fc.Arbitrary<Step> =>
  fc.record({ kind: fc.constantFrom(...kinds), place: fc.nat(5000), pick: fc.nat(5000) });

const mutation = fc.record({
  base: fc.nat(whole.length - 1),
  changes: fc.array(step(Object.keys(changes)), { maxLength: 3 }),
  damages: fc.array(step(Object.keys(damages)), { maxLength: 2 }),
});

function changedBy(steps: readonly Step[], content: unknown): unknown {
  return steps.reduce(
    (made, { kind, place, pick }) => changes[kind]?.(made, place, pick),
    structuredClone(content),
  );
}

function mutated({
  base,
  changes: wanted,
  damages: done,
}: typeof mutation extends fc.Arbitrary<infer T> ? T : never) {
  const { stack, content } = whole[base] as (typeof whole)[number];
  const text = written(changedBy(wanted, content)).trimStart();
  return {
    stack,
    text: damaged(done, text),
  };
}

function damaged(steps: readonly Step[], text: string): string {
  return steps.reduce((made, { kind, place, pick }) => damages[kind]?.(made, place, pick) ?? made, text);
}

function planned(file: StackFile, stack: string): readonly string[] {
  const pair =
    file.kind === 'host'
      ? { host: file.host, shape: { ...glm, host: file.host.name } }
      : { host, shape: file.shape };
  const release = planRelease({ ...pair, stack, templates, model, patches: new Map([[patchName, patch]]) });
  return reviewText(reviewOf(release));
}

/** Only what is wrong with the text as a whole has no key. */
const ofTheText = /^must (?:be YAML|not hold control|not name a version|be at most)/;

type End = 'planned' | 'refused' | 'not YAML';

/** How it ends; anything but a plan or a whole refusal is thrown. */
function endOf(act: () => unknown): End {
  try {
    act();
    return 'planned';
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const untold = error.problems.filter((problem) => !isWhole(problem));
    if (error.problems.length === 0 || untold.length > 0) throw new Error(JSON.stringify(untold));
    return error.problems.some(({ key }) => key === '') ? 'not YAML' : 'refused';
  }
}

function isWhole({ file, key, limit, remedy }: Problem): boolean {
  return file.startsWith('Pulumi.') && (key !== '' || ofTheText.test(limit)) && limit !== '' && remedy !== '';
}

it.each(whole)('what is to be damaged is whole: $stack', ({ stack, content }) => {
  expect(planned(load(openStackFile(`Pulumi.${stack}.yaml`, written(content))), stack)).toBeInstanceOf(Array);
});

describe('ten thousand damaged stack files', () => {
  it('are planned and reviewed, or refused with file, key and what to do', () => {
    const seen: Record<End, number> = { planned: 0, refused: 0, 'not YAML': 0 };
    fc.assert(
      fc.property(mutation, (made) => {
        const { stack, text } = mutated(made);
        const started = performance.now();
        const opened = endOf(() => {
          const source = openStackFile(`Pulumi.${stack}.yaml`, text);
          const loaded = endOf(() => planned(load(source), stack));
          // What is whole is its own draft.
          if (loaded === 'refused') endOf(() => planned(draft(source).file, stack));
          seen[loaded] += 1;
        });
        if (opened !== 'planned') seen[opened] += 1;
        expect(performance.now() - started).toBeLessThan(longestMs);
      }),
      { numRuns: 10_000, seed: 4 },
    );
    // Damage that is always the same, or always fatal, would prove nothing.
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(1000);
  });
});

describe('a thousand damaged values that Pulumi hands over', () => {
  it('are planned and reviewed, or refused with file, key and what to do', () => {
    fc.assert(
      fc.property(mutation, ({ base, changes: wanted }) => {
        const { stack, content } = whole[base] as (typeof whole)[number];
        const changed = changedBy(wanted, content) as { config?: Record<string, unknown> } | undefined;
        endOf(() => planned(load(openValues(`Pulumi.${stack}.yaml`, changed?.config ?? {}, [])), stack));
      }),
      { numRuns: 1000, seed: 4 },
    );
  });

  it('are refused where they are nested without end', () => {
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level += 1) deep = { deep };
    expect(endOf(() => openValues('Pulumi.x.yaml', { 'slot:shape': deep }, []))).toBe('refused');
  });
});

describe('whatever stands below slot:secrets', () => {
  const canary = fc.constantFrom(
    'canary',
    'canary\ncanary',
    '"canary',
    "can'ary canary",
    '*canary',
    '!canary',
  );
  const tree = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      canary,
      fc.constantFrom(null, 7, true),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('HF_TOKEN', 'secure', 'insecure', 'A-B', 'canary-'), tie('value'), {
        maxKeys: 3,
      }),
    ),
  })).value;

  const toldOf = (act: () => unknown): string => {
    try {
      act();
      return '';
    } catch (error) {
      return `${String(error)}${JSON.stringify(error)}`;
    }
  };

  it.each([0, 1, 2, 3, 4])('is never repeated, also where the file is damaged (%i damages)', (most) => {
    const steps = fc.array(step(Object.keys(damages)), { minLength: most, maxLength: most });
    fc.assert(
      fc.property(tree, steps, (values, done) => {
        const { content } = whole[1] as (typeof whole)[number];
        // Below the shape, so that what is cut or moved of it stays there.
        const text = written({ config: content.config }).trimStart();
        const below = damaged(done, `  slot:secrets:${written(values, '    ')}`);
        fc.pre(below.startsWith('  slot:secrets:') && !/^ {0,2}\S*canary/m.test(below.slice(15)));
        expect(toldOf(() => load(openStackFile('Pulumi.glm.yaml', text + below)))).not.toContain('canary');
      }),
      { numRuns: 200, seed: 4 },
    );
  });

  it('is never repeated where Pulumi hands it over decrypted', () => {
    fc.assert(
      fc.property(tree, fc.boolean(), (values, isMarked) => {
        const { content } = whole[1] as (typeof whole)[number];
        const config = { ...content.config, 'slot:secrets': values };
        const told = toldOf(() =>
          load(openValues('Pulumi.glm.yaml', config, isMarked ? ['slot:secrets'] : [])),
        );
        expect(told).not.toContain('canary');
      }),
      { numRuns: 500, seed: 4 },
    );
  });
});

describe('a text that takes long to read', () => {
  const isSmall = '  slot:shape: {}\n';

  it.each([
    ['a quarter of a million keys', Array.from({ length: 250_000 }, (_, key) => `  k${key}: 1\n`).join('')],
    [
      'all the keys that a file can hold',
      Array.from({ length: 25_000 }, (_, key) => `  k:${key}: 1\n`).join(''),
    ],
    ['all the nothings that a file can hold', `  slot:host: [${'~,'.repeat(100_000)}]\n`],
    ['a hundred thousand brackets', `  a:b: ${'['.repeat(100_000)}\n`],
    ['a hundred thousand braces', `  a:b: ${'{'.repeat(100_000)}\n`],
    ['a hundred thousand dashes', `  a:b:\n    ${'- '.repeat(100_000)}\n`],
    ['a hundred thousand quotes', `  a:b: ${'"'.repeat(100_000)}\n`],
    [
      'aliases that grow',
      Array.from({ length: 30 }, (_, n) => `  k:${n}: &a${n} [*a${n - 1}, *a${n - 1}]\n`).join(''),
    ],
    ['a long word', `  slot:shape: ${'1_'.repeat(100_000)}\n`],
    ['a long text of spaces', `  slot:shape: 'a${' '.repeat(200_000)}b'\n`],
    ['a long comment', `  # ${'x: '.repeat(80_000)}\n${isSmall}`],
    [
      'unknown keys',
      `  slot:shape: {${Array.from({ length: 15_000 }, (_, key) => `k${key}: 1`).join(', ')}}\n`,
    ],
    [
      'variables',
      `  slot:shape: {environment: {${Array.from({ length: 15_000 }, (_, key) => `k${key}: 1`).join(', ')}}}\n`,
    ],
  ])('%s: is refused in time', (_what, lines) => {
    const started = performance.now();
    expect(endOf(() => planned(load(openStackFile('Pulumi.x.yaml', `config:\n${lines}`)), 'x'))).not.toBe(
      'planned',
    );
    expect(performance.now() - started).toBeLessThan(longestMs);
  });
});
