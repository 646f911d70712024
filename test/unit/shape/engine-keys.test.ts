import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadStackFile } from '../../../shape/configuration.ts';
import { complaintsAbout } from '../../../shape/engines/extra-arguments.ts';
import { invokeVllm, vllmSchema } from '../../../shape/engines/vllm.ts';
import { vllmCommandLine } from '../../../shape/engines/vllm-command-line.ts';
import { type PlanInput, planRelease } from '../../../shape/plan.ts';
import type { Release } from '../../../shape/release.ts';
import type { ShapeConfig } from '../../../shape/shape.ts';
import { readTemplates } from '../../../templates/templates.ts';
import { completedFile, suppliedHost, suppliedShape } from '../../fixtures/operator-files.ts';
import { faultsOf } from '../../fixtures/problems.ts';

const templates = readTemplates();

/** The GLM shape with lines of YAML in its engine and below the shape, as an operator would write them. */
function written(engine: string, shape = ''): ShapeConfig {
  const text = completedFile('glm-w4a16')
    .replace('kind: vllm', `kind: vllm\n      ${engine}`)
    .replace('shortName: glm', `shortName: glm\n    ${shape}`);
  const file = loadStackFile('Pulumi.glm-w4a16.yaml', text);
  if (file.kind !== 'shape') throw new Error('no shape');
  return file.shape;
}

function planned(engine: string, shape = '', input: Partial<PlanInput> = {}): Release {
  return planRelease({
    host: { ...suppliedHost(), stateRoots: ['/home/dank/traces'] },
    shape: written(engine, shape),
    stack: 'glm-w4a16',
    templates,
    patches: new Map(),
    ...input,
  });
}

function valueBehind(release: Release, flag: string): string | undefined {
  const at = release.arguments.indexOf(flag);
  return at === -1 ? undefined : release.arguments[at + 1];
}

describe('speculative decoding', () => {
  const map = { method: 'mtp', num_speculative_tokens: 2 };

  it.each([
    ['a map', 'speculative: {method: mtp, num_speculative_tokens: 2}'],
    ['JSON', `speculative: '{"method":"mtp","num_speculative_tokens":2}'`],
    ['JSON with blanks', `speculative: '{ "method": "mtp", "num_speculative_tokens": 2 }'`],
    ['JSON over two lines', `speculative: "{\\"method\\": \\"mtp\\",\\n \\"num_speculative_tokens\\": 2}"`],
  ])('is the same argument written as %s', (_how, yaml) => {
    expect(JSON.parse(valueBehind(planned(yaml), '--speculative-config') ?? '')).toEqual(map);
  });

  it.each([
    ['in quotes that a shell would take away', `speculative: "'{\\"method\\":\\"mtp\\"}'"`],
    ['in double quotes of its own', `speculative: '"{}"'`],
    ['without its inner quotes', `speculative: '{method: mtp}'`],
    ['as a list', `speculative: '[1]'`],
    ['as a name', 'speculative: mtp'],
    ['as null in JSON', `speculative: 'null'`],
    ['as nothing', `speculative: ''`],
  ])('is refused %s, and the flag is named', (_how, yaml) => {
    const [problem] = faultsOf(() => written(yaml));
    expect(problem).toContain('slot:shape.engine.speculative');
    expect(problem).toContain('--speculative-config');
  });
});

describe('numbers of speculative decoding', () => {
  const flag = '--speculative-config';
  const configured = parse(completedFile('glm-w4a16')).config['slot:shape'].engine;

  it.each([
    ['a number that JavaScript changes', `'{"n": 9007199254740993}'`, 'whole number beyond'],
    ['an exponent', `'{"n": 1e3}'`, 'exponent: 1e3'],
    ['an exponent within', `'{"a": [{"n": 1.5E-3}]}'`, 'exponent: 1.5E-3'],
    ['a key twice', `'{"method": "mtp", "method": "ngram"}'`, 'must not name "method" twice'],
    ['nesting without end', `'{"a": ${'['.repeat(40)}${']'.repeat(40)}}'`, '32 levels'],
  ])('are refused in JSON with %s', (_what, yaml, limit) => {
    const [problem] = faultsOf(() => written(`speculative: ${yaml}`));
    expect(problem).toContain('slot:shape.engine.speculative');
    expect(problem).toContain(limit);
  });

  it.each<[string, unknown]>([
    ['beyond what JavaScript holds', { a: { n: 2 ** 53 } }],
    ['in a list', { a: [-(2 ** 60)] }],
    ['without end', { n: 1e300 }],
  ])('are refused as Pulumi hands them over %s', (_what, speculative) => {
    const found = vllmSchema.safeParse({ ...configured, speculative });
    expect(found.error?.issues.map(({ path }) => path)).toEqual([['speculative']]);
  });

  it('have no exponent in the argument, whoever wrote them how', () => {
    const word = valueBehind(
      planned(`speculative: '{"method": "x", "a": 0.0000001, "b": [-0.00000125, 4.0, 1]}'`),
      flag,
    );
    expect(word).toBe('{"method":"x","a":0.0000001,"b":[-0.00000125,4,1]}');
    const given = { ...configured, speculative: { method: 'x', a: 1e-7 }, gpuMemoryUtilization: 1e-7 };
    const place = { port: 1, payload: '/model', state: {}, mounted: [], publicNames: [] };
    const { arguments: words } = invokeVllm(vllmSchema.parse(given), place);
    expect(words[words.indexOf(flag) + 1]).toBe('{"method":"x","a":0.0000001}');
    expect(words[words.indexOf('--gpu-memory-utilization') + 1]).toBe('0.0000001');
  });
});

it('no flag that a field renders can be said again', () => {
  const fields = [
    'maxSequences: 2\n      maxBatchedTokens: 64\n      kvCacheMemory: 2 GiB\n      chatTemplate: /model/t.jinja',
    'speculative: {method: mtp}\n      shutdownTimeout: 5 s\n      profiler: {state: traces}',
    'telemetry: {tracesEndpoint: grpc://localhost:1, detailedTraces: [all], statistics: false}',
  ].join('\n      ');
  const text = completedFile('glm-w4a16').replace(/^ {6}max(?:Sequences|BatchedTokens):.*\n/gm, '');
  const file = loadStackFile(
    'Pulumi.glm-w4a16.yaml',
    text
      .replace('kind: vllm', `kind: vllm\n      ${fields}`)
      .replace('shortName: glm', 'shortName: glm\n    state: {traces: glm}'),
  );
  if (file.kind !== 'shape') throw new Error('no shape');
  const host = { ...suppliedHost(), stateRoots: ['/home/dank/traces'] };
  const release = planRelease({ host, shape: file.shape, stack: 'glm-w4a16', templates, patches: new Map() });
  const flags = release.arguments.filter((word) => word.startsWith('--'));
  expect(flags).toContain('--kv-cache-memory-bytes');
  expect(flags.length).toBeGreaterThan(20);
  for (const flag of flags) {
    const [complaint] = complaintsAbout([flag, 'x'], vllmCommandLine);
    expect(complaint?.message).toContain('which is decided elsewhere');
  }
});

describe('the profiler', () => {
  it('writes to a folder of the state, without stacks', () => {
    const release = planned('profiler: {state: traces}', 'state: {traces: glm}');
    expect(JSON.parse(valueBehind(release, '--profiler-config') ?? '')).toEqual({
      profiler: 'torch',
      torch_profiler_dir: '/state/traces',
      torch_profiler_with_stack: false,
    });
    expect(release.unit).toContain('--volume=/home/dank/traces/glm:/state/traces:rw');
  });

  it('is refused where its folder is not of the state', () => {
    expect(faultsOf(() => planned('profiler: {state: traces}'))).toEqual([
      'slot:shape.engine.profiler.state must be a folder of slot:shape.state: it has none',
    ]);
  });

  it.each(['{}', '{state: ../x}', '{state: traces, with_stack: true}', '/traces'])(
    'is refused as %s',
    (yaml) => {
      expect(faultsOf(() => written(`profiler: ${yaml}`, 'state: {traces: glm}'))).not.toEqual([]);
    },
  );
});

describe('the chat template', () => {
  it.each([
    ['of the payload', '/model/chat_template.jinja', ''],
    ['of a mounted folder', '/templates/a/glm.jinja', 'mounts: [{source: t, target: /templates}]'],
    ['that is mounted itself', '/glm.jinja', 'mounts: [{source: t/glm.jinja, target: /glm.jinja}]'],
  ])('may be a file %s', (_what, path, shape) => {
    expect(valueBehind(planned(`chatTemplate: ${path}`, shape), '--chat-template')).toBe(path);
  });

  it.each([
    ['of the host', '/home/dank/models/x.jinja'],
    ['beside a mount', '/models/x.jinja'],
    ['of the image', '/usr/share/x.jinja'],
  ])('must not be a file %s', (_what, path) => {
    expect(faultsOf(() => planned(`chatTemplate: ${path}`))).toEqual([
      'slot:shape.engine.chatTemplate must lie where something is mounted: /model',
    ]);
  });

  it.each(['chat.jinja', '/model/../etc/passwd', "'{{ messages }}'"])('must not be %s', (path) => {
    expect(faultsOf(() => written(`chatTemplate: ${path}`))[0]).toContain('engine.chatTemplate');
  });
});

describe('telemetry', () => {
  it('is not said where nothing is configured', () => {
    const { arguments: words } = planned('');
    for (const flag of ['--otlp-traces-endpoint', '--collect-detailed-traces', '--disable-log-stats'])
      expect(words).not.toContain(flag);
  });

  it('is said as vLLM takes it', () => {
    const release = planned(
      "telemetry: {tracesEndpoint: 'grpc://h:4317', detailedTraces: [model, worker], statistics: false}",
    );
    expect(valueBehind(release, '--otlp-traces-endpoint')).toBe('grpc://h:4317');
    expect(valueBehind(release, '--collect-detailed-traces')).toBe('model,worker');
    expect(release.arguments).toContain('--disable-log-stats');
  });

  it('is not collected for nobody', () => {
    expect(faultsOf(() => planned('telemetry: {detailedTraces: [all]}'))).toEqual([
      'slot:shape.engine.telemetry.detailedTraces must not be there without telemetry.tracesEndpoint: nobody would get them',
    ]);
  });

  it.each(['{detailedTraces: [gpu]}', '{statistics: 1}', '{endpoint: x}', 'on'])(
    'is refused as %s',
    (yaml) => {
      expect(faultsOf(() => written(`telemetry: ${yaml}`))).not.toEqual([]);
    },
  );
});

describe('the API key', () => {
  const release = planned("apiKey: {version: '1'}");

  it('is a secret of podman, in a variable that the engine reads', () => {
    expect(release.secrets).toEqual([{ variable: 'VLLM_API_KEY', name: 'frank-archon-VLLM_API_KEY-1' }]);
    expect(release.unit).toContain('--secret=frank-archon-VLLM_API_KEY-1,type=env,target=VLLM_API_KEY');
  });

  it('is no text of arguments and environment', () => {
    expect(release.arguments.join(' ')).not.toMatch(/key/i);
    expect(release.environment).not.toHaveProperty('VLLM_API_KEY');
  });

  it('of another version is another engine', () => {
    expect(planned("apiKey: {version: '2'}").engineIdentity).not.toBe(release.engineIdentity);
  });

  it.each([
    ['environment', 'environment: {VLLM_API_KEY: k}'],
    ['secrets', "secrets: {VLLM_API_KEY: {version: '1'}}"],
  ])('is not said in %s as well', (place, shape) => {
    const text = completedFile('glm-w4a16').replace(/^ {4}environment:\n(?: {6}.*\n)+/m, '');
    const file = loadStackFile(
      'Pulumi.glm-w4a16.yaml',
      text
        .replace('kind: vllm', "kind: vllm\n      apiKey: {version: '1'}")
        .replace('shortName: glm', `shortName: glm\n    ${shape}`),
    );
    if (file.kind !== 'shape') throw new Error('no shape');
    const { shape: config } = file;
    const input = { host: suppliedHost(), stack: 'glm-w4a16', templates, patches: new Map<string, string>() };
    expect(faultsOf(() => planRelease({ ...input, shape: config }))).toEqual([
      `slot:shape.${place}.VLLM_API_KEY must not be there: slot:shape.engine.apiKey fills the variable`,
    ]);
  });

  it.each(['sk-canary', '{secure: v1:x}', '{version: 1.20}', '{}', '{value: sk-canary}'])(
    'is refused as %s',
    (yaml) => {
      expect(faultsOf(() => written(`apiKey: ${yaml}`))).not.toEqual([]);
    },
  );
});

describe('the shutdown timeout', () => {
  it('is whole seconds', () => {
    expect(valueBehind(planned('shutdownTimeout: 2 min'), '--shutdown-timeout')).toBe('120');
    expect(planned('').arguments).not.toContain('--shutdown-timeout');
  });

  it.each(['1.5 s', '250 ms', '30', '-1 s'])('is refused as %s', (yaml) => {
    expect(faultsOf(() => written(`shutdownTimeout: ${yaml}`))[0]).toContain('engine.shutdownTimeout');
  });
});

describe('what stands behind a flag', () => {
  it.each(['servedName', 'kvCacheDtype', 'toolParser', 'reasoningParser'])(
    'must not look like one: %s',
    (key) => {
      const text = completedFile('glm-w4a16').replace(
        new RegExp(`^ {6}${key}: .*$`, 'm'),
        `      ${key}: --port`,
      );
      expect(faultsOf(() => loadStackFile('Pulumi.glm-w4a16.yaml', text))).toEqual([
        expect.stringContaining(`slot:shape.engine.${key} must be`),
      ]);
    },
  );
});

describe('the arguments of R9V', () => {
  const shape = suppliedShape('r9v-q8_0');
  const withWords = (...further: string[]): Release => {
    const words = ['--model', '{payload}', '--alias', '{servedNames}', ...further];
    const engine = { ...shape.engine, arguments: words } as typeof shape.engine;
    const input = { host: suppliedHost(), stack: 'r9v-q8_0', templates, patches: new Map<string, string>() };
    return planRelease({ ...input, shape: { ...shape, engine } });
  };

  it.each([
    ['--host', '0.0.0.0', '--port', '{port}'],
    ['--port', '7770', '--host', '::'],
    ['--listen', '0.0.0.0:{port}'],
    ['{port}'],
  ])('may listen where the host says: %s %s %s %s', (...words) => {
    expect(faultsOf(() => withWords(...words))).toEqual([]);
  });

  it.each([
    ['--port', '7771'],
    ['--port', '8080'],
    ['--port', '7770x'],
    ['--port', '7770', '--port', '7771'],
    ['--listen', '17770'],
    [],
  ])('must not listen on another port: %s %s %s %s', (...words) => {
    expect(faultsOf(() => withWords(...words, '--host', '0.0.0.0'))).toEqual([
      expect.stringContaining('slot:shape.engine.arguments must listen on port 7770'),
    ]);
  });

  it.each([['--host', '127.0.0.1'], ['--host', 'localhost'], ['--host', '192.0.2.7'], ['--host'], []])(
    'must not listen where no client reaches it: %s %s',
    (...words) => {
      expect(faultsOf(() => withWords('--port', '{port}', ...words))).toEqual([
        expect.stringContaining('slot:shape.engine.arguments must listen on 0.0.0.0'),
      ]);
    },
  );
});

describe('the entrypoint', () => {
  const r9v = suppliedShape('r9v-q8_0');
  const input = { host: suppliedHost(), stack: 'r9v-q8_0', templates, patches: new Map<string, string>() };

  it('of vLLM is what its arguments are made for', () => {
    expect(planned('').entrypoint).toEqual(['vllm', 'serve']);
  });

  it('of R9V is the declared one, or none', () => {
    const engine = { ...r9v.engine, entrypoint: ['/app/r9v'] } as typeof r9v.engine;
    expect(planRelease({ ...input, shape: { ...r9v, engine } }).entrypoint).toEqual(['/app/r9v']);
    expect(planRelease({ ...input, shape: r9v })).not.toHaveProperty('entrypoint');
  });
});
