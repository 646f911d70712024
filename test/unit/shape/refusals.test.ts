import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDocument } from 'yaml';
import { loadStackFile, type Problem } from '../../../shape/configuration.ts';
import { planRelease } from '../../../shape/plan.ts';
import { readTemplates } from '../../../templates/templates.ts';
import { completedFile, suppliedHost, suppliedShape } from '../../fixtures/operator-files.ts';
import { problemsOf } from '../../fixtures/problems.ts';

const templates = readTemplates();

/** The problems of a whole stack file in which the value of one key is another text of YAML. */
function refusals(stack: 'dankserver' | 'glm-w4a16', path: string, value: string): readonly Problem[] {
  const document = parseDocument(completedFile(stack));
  const root = stack === 'dankserver' ? 'slot:host' : 'slot:shape';
  document.setIn(['config', root, ...path.split('.')], 'PLACE');
  return problemsOf(() =>
    loadStackFile(
      `Pulumi.${stack}.yaml`,
      String(document).replace(/'?PLACE'?/, () => value),
    ),
  );
}

const ofShape = (path: string, value: string) => refusals('glm-w4a16', path, value);
const ofHost = (path: string, value: string) => refusals('dankserver', path, value);

describe('a secret in the wrong place', () => {
  it.each([
    ['secrets', '{ HF_TOKEN: hunter2 }', 'slot:secrets.HF_TOKEN'],
    ['secrets', '{ HF_TOKEN: [hunter2] }', 'slot:secrets.HF_TOKEN'],
    ['secrets', '{ HF_TOKEN: {value: hunter2} }', 'slot:secrets.HF_TOKEN'],
    ['secrets', '{ HF_TOKEN: {hunter2: } }', 'slot:secrets.HF_TOKEN'],
    ['secrets', '{ HF_TOKEN: {version: Hunter2 hunter2} }', 'slot:secrets.HF_TOKEN'],
    ['secrets', '{ hunter2-x: y }', 'slot:secrets.<variable>'],
    ['secrets', 'hunter2', 'slot:secrets.<variable>'],
    ['secrets', '[hunter2]', 'slot:secrets.<variable>'],
    ['secrets', '{ HF_TOKEN: 0600 }', 'slot:secrets.HF_TOKEN'],
    ['engine.apiKey', 'hunter2', 'slot:secrets.VLLM_API_KEY'],
    ['engine.apiKey', '{key: hunter2}', 'slot:secrets.VLLM_API_KEY'],
    ['environment', '{ HF_TOKEN: [hunter2] }', 'slot:secrets.HF_TOKEN'],
    ['environment', '{ DB_PASSWORD: 0600 }', 'slot:secrets.DB_PASSWORD'],
  ])('is not repeated below %s as %s, and its place is told', (path, value, place) => {
    const problems = ofShape(path, value);
    expect(problems.map(({ remedy }) => remedy).join('\n')).toContain(
      `--secret --path ${place} -s glm-w4a16`,
    );
    expect(JSON.stringify(problems)).not.toMatch(/hunter2|0600/i);
  });

  it.each(['hf_realtoken', 'sk-canary12', 'glpat-abcdef'])('is no version either: %s', (version) => {
    const written = `'${version.toLowerCase()}'`;
    for (const problems of [
      ofShape('secrets', `{HF_TOKEN: {version: ${written}}}`),
      ofShape('engine.apiKey', `{version: ${written}}`),
    ]) {
      expect(problems).toHaveLength(1);
      expect(problems[0]?.limit).toContain('must not be a secret itself');
      expect(JSON.stringify(problems)).not.toContain(version);
    }
  });

  it('leaves a version that is a number to be quoted', () => {
    expect(ofShape('secrets', '{HF_TOKEN: {version: 2}}')).toEqual([
      expect.objectContaining({ value: '2', remedy: "quote it: '2'" }),
    ]);
  });

  it('is in no message, whatever key it was given to', () => {
    const key = fc.constantFrom('shortName', 'host', 'model', 'limits', 'mounts', 'patches', 'engine.kind');
    const prefix = fc.constantFrom('hf_', 'sk-', 'ghp_', 'glpat-', 'AKIA', 'xoxb-');
    const rest = fc.stringMatching(/^[A-Z0-9]{16,30}$/);
    fc.assert(
      fc.property(key, prefix, rest, (path, begin, end) => {
        const problems = ofShape(path, begin + end);
        expect(problems).not.toEqual([]);
        expect(JSON.stringify(problems)).not.toContain(end);
      }),
      { numRuns: 60 },
    );
  });
});

describe('what to write instead', () => {
  it.each([
    ['engine.expertOffload', 'yes', 'write true or false'],
    ['engine.expertOffload', "'off'", 'write true or false'],
    ['engine.expertOffload', '1', 'write true or false'],
    ['engine.expertOffload', "'true'", 'take the quotes away: true'],
    ['engine.maxModelLength', '131_072', 'write 131072'],
    ['engine.maxModelLength', '0x20000', 'write 131072'],
    ['engine.gpuMemoryUtilization', '.98', 'write 0.98'],
    ['engine.gpuMemoryUtilization', "'0.98'", 'take the quotes away: 0.98'],
    ['engine.ipc', 'on', 'write host or private'],
    ['engine.servedName', '0600', "quote it: '0600'"],
    ['deadlines', '{boot: 20:00}', "write it with its unit, e.g. '20 min'"],
    ['engine.telemetry', 'on', 'write a map'],
  ])('follows what %s takes for %s', (path, value, remedy) => {
    expect(ofShape(path, value)).toEqual([
      expect.objectContaining({ remedy: expect.stringContaining(remedy) }),
    ]);
  });

  it.each([
    ['selinux', 'on', 'write enforcing, permissive or disabled'],
    ['selinux', 'Enforcing', 'write enforcing, permissive or disabled'],
    ['integratedGpu', 'no', 'write true or false'],
    ['gpus', '[03:00.0]', "in full and in quotes, e.g. '0000:03:00.0'"],
    ['gpus', "['03:00.0']", "in full and in quotes, e.g. '0000:03:00.0'"],
    ['gpus', '0000:03:00.0', "write a list: ['0000:03:00.0']"],
    ['gpus', "'0000:03:00.0'", "'slot:host.gpus[0]'"],
  ])('follows what %s of a host takes for %s', (path, value, remedy) => {
    expect(ofHost(path, value)).toEqual([
      expect.objectContaining({ remedy: expect.stringContaining(remedy) }),
    ]);
  });

  it('does not offer half a port for a number that has to be whole', () => {
    expect(ofHost('port', '.5')[0]?.remedy).not.toContain('0.5');
  });

  it.each([
    ['mounts', "'slot:shape.mounts[0].<source|target|expected>'"],
    ['patches', "'slot:shape.patches[0]'"],
    ['exceptions', "'slot:shape.exceptions.<rule>'"],
    ['state', "'slot:shape.state.<name>'"],
    ['environment', "'slot:shape.environment.<variable>'"],
    ['limits', "'slot:shape.limits.<memlock|pids>'"],
    ['engine', "'slot:shape.engine.kind'"],
    ['engine.extraArguments', "'slot:shape.engine.extraArguments[0]'"],
  ])('is one of what %s holds, where a word stands for all of it', (path, place) => {
    const [problem] = ofShape(path, 'word');
    expect(problem?.remedy).toContain(place);
    expect(problem?.remedy).not.toContain(`'slot:shape.${path}' `);
  });

  it.each(['shortName', 'engine.servedName', 'host'])('for an empty text at %s is a value', (path) => {
    expect(ofShape(path, "''")).toEqual([
      expect.objectContaining({ limit: 'must not be empty', value: undefined }),
    ]);
  });

  it('for another image than the recorded one is to change the record with it', () => {
    expect(ofShape('engine.image.recordedPrefix', 'ffff')[0]?.remedy).toContain('change recordedPrefix');
  });

  it.each(['      kind:', '    payload:', '    host:'])('for a tab before %s is told once', (line) => {
    const text = completedFile('glm-w4a16').replace(line, `\t${line.trim()}`);
    const problems = problemsOf(() => loadStackFile('Pulumi.glm-w4a16.yaml', text));
    expect(problems.map(({ limit }) => limit)).toEqual([expect.stringContaining('Tabs are not allowed')]);
  });

  it('for one GPU too few is the next, never one that is there', () => {
    const shape = suppliedShape('glm-w4a16');
    const engine = { ...shape.engine, tensorParallel: 4 } as typeof shape.engine;
    const input = { host: suppliedHost(), stack: 'glm-w4a16', templates, patches: new Map<string, string>() };
    const [problem] = problemsOf(() => planRelease({ ...input, shape: { ...shape, engine } }));
    expect(problem?.key).toBe('slot:shape.engine.tensorParallel');
    expect(problem?.remedy).toContain("'slot:host.gpus[2]'");
  });
});

describe('a path', () => {
  it.each(['~', '~/x', '~dank/x', '$HOME/x', `\${HOME}/x`])(
    'that only a shell would write out is refused: %s',
    (path) => {
      const written = `'${path}'`;
      for (const problems of [
        ofShape('payload.folder', written),
        ofShape('state', `{a: ${written}}`),
        ofShape('mounts', `[{source: ${written}, target: /d}]`),
        ofHost('modelsRoot', written),
      ]) {
        expect(problems).toEqual([
          expect.objectContaining({ limit: expect.stringContaining('must not begin with ~ or $HOME') }),
        ]);
      }
    },
  );

  it.each(['a~b', 'x/~', 'a$HOME'])('may have the letter elsewhere: %s', (path) => {
    expect(ofShape('payload.folder', `'${path}'`)).toEqual([]);
  });
});

describe('the file that the engine is pointed at', () => {
  const withEntry = (entry: string) => ofShape('payload', `{folder: x, entry: ${entry}}`);

  it.each([
    ['q-00002-of-00004.gguf', 'q-00001-of-00004.gguf'],
    ['a/q-00010-of-00014.gguf', 'a/q-00001-of-00014.gguf'],
    ['q-2-of-4.gguf', 'q-1-of-4.gguf'],
  ])('is not a later part: %s', (entry, first) => {
    expect(withEntry(entry)).toEqual([
      expect.objectContaining({ key: 'slot:shape.payload.entry', remedy: `write ${first}` }),
    ]);
  });

  it.each(['q-00001-of-00004.gguf', 'q.gguf', 'q-2-of-a.gguf'])(
    'is the first or the only one: %s',
    (entry) => {
      expect(withEntry(entry)).toEqual([]);
    },
  );
});

describe('a host', () => {
  it.each([
    ['dank@127.0.0.1', 'write address: 127.0.0.1, user: dank'],
    ['127.0.0.1:22', 'write address: 127.0.0.1, sshPort: 22'],
    ['ssh://h', 'write address: h'],
    ['ssh://dank@h:2222', 'write address: h, user: dank, sshPort: 2222'],
    ["'[fd00::7]:22'", 'write address: fd00::7, sshPort: 22'],
    ["'[fd00::7]'", 'write address: fd00::7'],
    ['192.0.2.0/24', 'write e.g. 192.0.2.7'],
    ['a@b@c', 'write e.g. 192.0.2.7'],
  ])('is not at %s, and the keys that are meant are told', (address, remedy) => {
    expect(ofHost('address', address)).toEqual([
      expect.objectContaining({ key: 'slot:host.address', remedy }),
    ]);
  });

  it.each(['192.0.2.7', 'h.example', 'fd00::7', "'::1'", 'fe80::1%eth0'])('may be at %s', (address) => {
    expect(ofHost('address', address)).toEqual([]);
  });

  it.each(['service', 'target', 'socket', 'timer'])('has no service that ends as a unit: .%s', (ending) => {
    expect(ofHost('service', `x.${ending}`)).toEqual([expect.objectContaining({ remedy: 'write x' })]);
  });

  it.each(["'-x'", "' x'", "'x '", "''"])('has no public name like %s', (name) => {
    expect(ofHost('publicName', name)).toEqual([expect.objectContaining({ key: 'slot:host.publicName' })]);
  });

  it('has the name of its file', () => {
    expect(ofHost('name', 'other')).toEqual([
      expect.objectContaining({
        file: 'Pulumi.dankserver.yaml',
        key: 'slot:host.name',
        value: 'other',
        limit: expect.stringContaining('must be dankserver'),
      }),
    ]);
  });
});

describe('speculative decoding', () => {
  const key = 'slot:shape.engine.speculative';

  it.each([
    ['{methode: mtp}', `${key}.methode`, 'did you mean method?'],
    ['{method: mtp, num_spec_tokens: 4}', `${key}.num_spec_tokens`, 'did you mean num_speculative_tokens?'],
    ['{method: mtp, numSpeculativeTokens: 4}', `${key}.numSpeculativeTokens`, 'num_speculative_tokens?'],
    [`'{"methode":"mtp"}'`, `${key}.methode`, 'did you mean method?'],
    ['{method: mtp, num_speculative_tokens: four}', `${key}.num_speculative_tokens`, 'e.g. 4'],
    ['{method: mtp, num_speculative_tokens: 0}', `${key}.num_speculative_tokens`, 'e.g. 4'],
    ['{method: mtp, num_speculative_tokens: 4.5}', `${key}.num_speculative_tokens`, 'e.g. 4'],
    ["{method: mtp, num_speculative_tokens: '4'}", `${key}.num_speculative_tokens`, 'e.g. 4'],
    ['{method: 3}', `${key}.method`, 'write its name'],
    ['{num_speculative_tokens: 4}', key, '{method: mtp'],
    ['{}', key, '{method: mtp'],
  ])('is refused as %s', (value, at, remedy) => {
    expect(ofShape('engine.speculative', value)).toEqual([
      expect.objectContaining({ key: at, remedy: expect.stringContaining(remedy) }),
    ]);
  });

  it.each([
    '{method: mtp, num_speculative_tokens: 4}',
    '{model: /draft, num_speculative_tokens: 8}',
    '{method: mtp, lanes_of_the_fork: 4}',
    '{method: ngram, prompt_lookup_max: 5, prompt_lookup_min: 2, num_speculative_tokens: 2}',
  ])('is accepted as %s', (value) => {
    expect(ofShape('engine.speculative', value)).toEqual([]);
  });
});

describe('the arguments of R9V', () => {
  const shape = suppliedShape('r9v-q8_0');
  const listening = ['--host', '0.0.0.0', '--port', '{port}', '--alias', '{servedNames}'];
  const withWords = (...words: string[]) => {
    const engine = { ...shape.engine, arguments: [...listening, ...words] } as typeof shape.engine;
    const input = { host: suppliedHost(), stack: 'r9v-q8_0', templates, patches: new Map<string, string>() };
    return problemsOf(() => planRelease({ ...input, shape: { ...shape, engine } }));
  };

  it.each([[[]], [['--model', '/models/x.gguf']], [['--mmproj', '/model/other.gguf']]])(
    'are refused without the payload: %j',
    (words) => {
      expect(withWords(...words).map(({ limit }) => limit)).toEqual([
        expect.stringContaining('must name {payload}'),
      ]);
    },
  );

  it.each([
    ['{payloads}', '{payload}'],
    ['{ctx}', '{maxModelLength}'],
    ['{maxModelLen}', '{maxModelLength}'],
    ['{servedname}', '{servedName}'],
    ['{stat:q8xl}', '{state:q8xl}'],
    ['{model}', '{payload}'],
  ])('are refused with %s', (written, meant) => {
    expect(withWords('--model', '{payload}', '--x', written)).toEqual([
      expect.objectContaining({ value: written, remedy: `did you mean ${meant}?` }),
    ]);
  });

  it.each(['{"a":1}', '{x}', '{{payloads}}', `\${ctx}`, '{ ctx }'])('may hold other braces: %s', (word) => {
    expect(withWords('--model', '{payload}', '--x', word)).toEqual([]);
  });

  it.each([['--ctx-size', '4096'], ['-c', '262144'], ['--ctx-size=8192'], ['-c', 'x']])(
    'are refused with another length: %s %s',
    (...words) => {
      expect(withWords('--model', '{payload}', ...words)).toEqual([
        expect.objectContaining({ limit: 'must be maxModelLength, 131072' }),
      ]);
    },
  );

  it.each([
    [['--ctx-size', '{maxModelLength}']],
    [['-c', '131072']],
    [['-c', '0']],
    [['-c', '262144', '--parallel', '2']],
    [[]],
  ])('may say the same length: %j', (words) => {
    expect(withWords('--model', '{payload}', ...words)).toEqual([]);
  });
});
