import { describe, expect, it } from 'vitest';
import { parseDocument } from 'yaml';
import { loadStackFile } from '../../../shape/configuration.ts';
import { planRelease } from '../../../shape/plan.ts';
import type { Release } from '../../../shape/release.ts';
import { logicalLines } from '../../../shape/systemd.ts';
import { readTemplates } from '../../../templates/templates.ts';
import { completedFile, suppliedHost } from '../../fixtures/operator-files.ts';
import { faultsOf } from '../../fixtures/problems.ts';
import { systemdWords } from '../../fixtures/systemd-reader.ts';

const host = suppliedHost();

type Setting = readonly [path: readonly string[], value: unknown];

/** The release of the operator's stack file with these keys written into its text. */
function releaseWith(...settings: readonly Setting[]): Release {
  return releaseOf(textWith(...settings));
}

function textWith(...settings: readonly Setting[]): string {
  const document = parseDocument(completedFile('glm-w4a16'));
  for (const [path, value] of settings) document.setIn(['config', 'slot:shape', ...path], value);
  return document.toString({ defaultStringType: 'QUOTE_DOUBLE' });
}

function releaseOf(text: string, on = host): Release {
  const file = loadStackFile('Pulumi.glm-w4a16.yaml', text);
  if (file.kind !== 'shape') throw new Error('no shape');
  const templates = readTemplates();
  return planRelease({ host: on, shape: file.shape, stack: 'glm-w4a16', templates, patches: new Map() });
}

function problemsOf(text: string): readonly string[] {
  return faultsOf(() => releaseOf(text));
}

/** What podman gets, by a reading of systemd's grammar that knows nothing of the encoder. */
function podmanWords(release: Release): readonly string[] {
  const [line = ''] = logicalLines(release.unit).filter((candidate) => candidate.startsWith('ExecStart='));
  // The invocation is systemd's to fill in.
  return systemdWords(line.slice('ExecStart='.length).replace(`\${INVOCATION_ID}`, 'x'));
}

describe('a percent sign', () => {
  const hostile = ['http://u%40h:3128', '%h-%n', '100%', 'a%20b', '%%', '%t/%i'];

  it.each(hostile)('in a variable reaches the engine: %s', (value) => {
    expect(podmanWords(releaseWith([['environment', 'X'], value]))).toContain(`--env=X=${value}`);
  });

  it.each(hostile)('in an argument reaches the engine: %s', (value) => {
    expect(podmanWords(releaseWith([['engine', 'servedName'], value]))).toContain(value);
  });

  it.each(['m%3Ax', '%h', '100%'])('in a path of the host is a path of that name: %s', (name) => {
    const release = releaseOf(
      textWith(
        [['payload', 'folder'], `/srv/${name}`],
        [['mounts'], [{ source: `/srv/d-${name}`, target: `/${name}` }]],
      ),
      { ...host, deviceFiles: [`/dev/${name}`], securityOptions: [`seccomp=/etc/${name}`] },
    );
    expect(podmanWords(release)).toEqual(
      expect.arrayContaining([
        `--volume=/srv/${name}:/model:ro`,
        `--volume=/srv/d-${name}:/${name}:ro`,
        `--device=/dev/${name}`,
        `--security-opt=seccomp=/etc/${name}`,
      ]),
    );
  });

  it('stands doubled wherever else a unit has one', () => {
    const release = releaseWith([['environment', 'X'], '%n %h 100%'], [['engine', 'servedName'], 'a%20b']);
    for (const text of [release.unit, release.target]) {
      for (const line of logicalLines(text)) expect(line.replaceAll('%%', '')).not.toContain('%');
    }
  });
});

describe('JSON', () => {
  const json =
    '{"rope_scaling": {"type": "yarn", "factor": 4.0}, "note": "100 % of $HOME, \\"it\'s\\" \\\\d+"}';
  const meant: unknown = JSON.parse(json);

  it('as a map reaches the engine as the same object', () => {
    const speculative = {
      method: 'ngram',
      prompt_lookup: { min: 2, max: 4 },
      note: `it's "100 %" of $HOME \\d`,
    };
    const words = podmanWords(releaseWith([['engine', 'speculative'], speculative]));
    expect(JSON.parse(words[words.indexOf('--speculative-config') + 1] ?? '')).toEqual(speculative);
  });

  it('as text reaches the engine as the same object', () => {
    const words = podmanWords(
      releaseWith([
        ['engine', 'extraArguments'],
        ['--hf-overrides', json],
      ]),
    );
    const word = words[words.indexOf('--hf-overrides') + 1] ?? '';
    expect(word).toBe(json);
    expect(JSON.parse(word)).toEqual(meant);
  });

  it('behind = in one element reaches the engine as the same object', () => {
    const words = podmanWords(releaseWith([['engine', 'extraArguments'], [`--hf-overrides=${json}`]]));
    const word = words.find((candidate) => candidate.startsWith('--hf-overrides=')) ?? '';
    expect(JSON.parse(word.slice('--hf-overrides='.length))).toEqual(meant);
  });

  it.each([
    [['--hf-overrides', `'${json}'`]],
    [[`--hf-overrides='${json}'`]],
    [['--compilation-config', `'{}'`]],
  ])('in quotes that a shell would have taken away is refused: %j', (extraArguments) => {
    const [problem] = problemsOf(textWith([['engine', 'extraArguments'], extraArguments]));
    expect(problem).toMatch(/^slot:shape\.engine\.extraArguments\[\d\] .*quotes/);
  });

  it('of a flag that has a field of its own is refused, with the name of the flag', () => {
    const extraArguments = ['--speculative-config={"method":"mtp"}'];
    const [problem] = problemsOf(textWith([['engine', 'extraArguments'], extraArguments]));
    expect(problem).toMatch(/extraArguments\[0\].*--speculative-config/);
  });

  it('as text where a map may stand reaches the engine as the same object', () => {
    const words = podmanWords(releaseWith([['engine', 'speculative'], '{"method": "ngram", "n": 2}']));
    const word = words[words.indexOf('--speculative-config') + 1] ?? '';
    expect(JSON.parse(word)).toEqual({ method: 'ngram', n: 2 });
  });

  it.each([`'{"method":"mtp"}'`, '{method:mtp}', 'mtp', '[]', '{"method":"mtp"'])(
    'is refused where it is none: %s',
    (text) => {
      expect(problemsOf(textWith([['engine', 'speculative'], text]))[0]).toMatch(
        /^slot:shape\.engine\.speculative /,
      );
    },
  );
});

describe('a backslash', () => {
  it.each([
    '{"stop":["\\n\\n"]}',
    '{"t":"say \\"hi\\""}',
    '{"re":"\\\\d+"}',
    '{"t":"\\u003c/think\\u003e"}',
    'C:\\',
    "it's",
  ])('reaches the engine: %s', (value) => {
    const words = podmanWords(
      releaseWith(
        [['environment', 'X'], value],
        [
          ['engine', 'extraArguments'],
          ['--x', value],
        ],
      ),
    );
    expect(words).toContain(`--env=X=${value}`);
    expect(words[words.indexOf('--x') + 1]).toBe(value);
  });
});

describe('a word', () => {
  it.each([
    ['empty', ''],
    ['blanks', 'a b'],
    ['two flags', '--p=1 --q=2'],
    ['a semicolon', ';'],
    ['a number sign', '#x'],
    ['a tab', 'a\tb'],
  ])('stays one: %s', (_what, value) => {
    const words = podmanWords(releaseWith([['environment', 'EXTRA'], value]));
    expect(words).toContain(`--env=EXTRA=${value}`);
  });

  it.each([
    ['a newline that would begin a directive', 'a\nExecStartPre=/usr/bin/touch /x'],
    ['a newline at the end', 'dG9rZW4=\n'],
    ['a carriage return', 'a\rb'],
    ['NUL', 'a\0b'],
  ])('is refused with %s, before anything is rendered', (_what, value) => {
    for (const path of [
      ['environment', 'BANNER'],
      ['engine', 'servedName'],
    ]) {
      expect(problemsOf(textWith([path, value]))[0]).toMatch(/^slot:shape\.\S+ must be one line/);
    }
  });

  it('of a path keeps its blanks', () => {
    const release = releaseWith([['payload', 'folder'], '/srv/my models/a']);
    expect(podmanWords(release)).toContain('--volume=/srv/my models/a:/model:ro');
  });
});

describe('the environment', () => {
  const values = {
    JSON_LIST: '[{"d":"x"}]',
    QUOTE: "it's",
    BACKSLASH: 'a\\b',
    EXPANDED: '50%20 $HOME',
    COMMENT: '"x" # c',
    BLANKS: ' leading and trailing ',
  };

  it('goes one way, as words of podman, whatever its values are', () => {
    const release = releaseWith([['environment'], values]);
    const given = podmanWords(release).filter((word) => word.startsWith('--env'));
    expect(given).toEqual(
      Object.entries(values)
        .map(([name, value]) => `--env=${name}=${value}`)
        .sort(),
    );
    expect(release.unit).not.toMatch(/^(?:Environment|EnvironmentFile|PassEnvironment)=|--env-file/m);
  });

  it.each(['a-b', '1A', 'A B', '', 'A=B', 'export A', 'Ä'])('has no variable %j', (name) => {
    expect(problemsOf(textWith([['environment', name], 'x']))[0]).toMatch(/must be the name of a variable/);
  });

  it('has no variable twice', () => {
    const text = textWith().replace(/^( +)(VLLM_\w+): .*$/m, '$&\n$1$2: "1"');
    expect(problemsOf(text).join()).toMatch(/slot:shape\.environment.*VLLM_ENGINE_READY_TIMEOUT_S|twice/);
  });
});

describe('a limit', () => {
  it.each([
    ['64MiB', 'LimitMEMLOCK=64M'],
    ['64 MiB', 'LimitMEMLOCK=64M'],
    ['infinity', 'LimitMEMLOCK=infinity'],
  ])('of locked memory of %s is shown in the unit with its unit', (memlock, line) => {
    expect(releaseWith([['limits', 'memlock'], memlock]).unit).toContain(`\n${line}\n`);
  });

  it.each([8192, -1, '8192', '-1', '-1:-1', '64', '64 MB', 'unlimited'])(
    'of locked memory is refused as %j',
    (memlock) => {
      expect(problemsOf(textWith([['limits', 'memlock'], memlock]))[0]).toMatch(
        /^slot:shape\.limits\.memlock must be infinity/,
      );
    },
  );

  it.each([
    [4096, '--pids-limit=4096'],
    ['infinity', '--pids-limit=0'],
  ])('of processes of %j is shown in the unit', (pids, word) => {
    expect(podmanWords(releaseWith([['limits', 'pids'], pids]))).toContain(word);
  });

  it.each([-1, 0, 1.5, '-1', '4096'])('of processes is refused as %j', (pids) => {
    expect(problemsOf(textWith([['limits', 'pids'], pids]))[0]).toMatch(
      /^slot:shape\.limits\.pids must be (?:infinity|more than 0)/,
    );
  });
});
