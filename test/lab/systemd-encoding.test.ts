import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildEngineImage } from '../../lab/engine/image.ts';
import { canRunLab, createLab, type Lab } from '../../lab/lab.ts';
import { pushImage, REGISTRY } from '../../lab/registry.ts';
import { planRelease } from '../../shape/plan.ts';
import { decodeWords, encodeWord } from '../../shape/systemd.ts';
import { readTemplates } from '../../templates/templates.ts';
import { hostileWords, wordArbitrary } from '../fixtures/hostile-words.ts';
import { suppliedHost, suppliedShape } from '../fixtures/operator-files.ts';

const ability = await canRunLab('nspawn');

/** Serves, so that the unit becomes ready, whatever its arguments are. */
const server =
  "import http.server as s; s.HTTPServer(('', 7770), s.SimpleHTTPRequestHandler).serve_forever()";

describe.skipIf(!ability.ok)('on a real systemd', () => {
  let lab: Lab;

  beforeAll(async () => {
    lab = await createLab({ kind: 'nspawn' });
  });

  afterAll(async () => {
    await lab?.down();
  });

  test('a program gets the words that were configured, byte for byte', async () => {
    expect(await wordsBehind(hostileWords.map(encodeWord))).toEqual(hostileWords);
    const words = fc.array(wordArbitrary, { minLength: 60, maxLength: 120 });
    await fc.assert(
      fc.asyncProperty(words, async (list) => {
        expect(await wordsBehind(list.map(encodeWord))).toEqual(list);
      }),
      { numRuns: 5, interruptAfterTimeLimit: 120_000 },
    );
  });

  test.each([
    ['a percent sign', 'a%nb', '"a%nb"'],
    ['a variable', '$HOME', "'$HOME'"],
    ['a backslash', 'a\\tb', "'a\\tb'"],
    ['quotes', '{"a":1}', '{"a":1}'],
  ])('it would not without the encoding of %s', async (_what, word, unencoded) => {
    expect(await wordsBehind([unencoded])).not.toEqual([word]);
  });

  test('a line is read here as it is read there', async () => {
    const lines = [
      ...hostileWords.map(encodeWord),
      `a"b c"d --f={"a":1}`,
      `"\\x61\\xc3\\xa4" '\\s' '\\t'`,
      'a$b a$ %% a;b',
    ];
    expect(await wordsBehind(lines)).toEqual(lines.flatMap((line) => decodeWords(line)));
  });

  test('an engine gets arguments and environment through podman as they were configured', async () => {
    const built = await buildEngineImage({ engine: 'r9v' });
    const repository = `${REGISTRY}/tcclaviger/vllm`;
    const digest = await pushImage(built.reference, 'tcclaviger/vllm:encoding');
    const shape = suppliedShape('r9v-q8_0');
    if (shape.engine.kind !== 'r9v') throw new Error('r9v-q8_0 is of another kind');
    const { publicName: _, ...host } = suppliedHost();
    const environment = Object.fromEntries(hostileWords.map((word, index) => [`HOSTILE_${index}`, word]));
    const release = planRelease({
      host: { ...host, deviceFiles: [], stateRoots: ['/srv'], modelsRoot: '/srv' },
      shape: {
        ...shape,
        engine: {
          ...shape.engine,
          image: { repository, digest },
          arguments: ['--model', '{payload}', '--host', '0.0.0.0', '--port', '{port}', ...hostileWords],
          healthPath: '/',
        },
        payload: { folder: '.', verify: 'inventory' },
        state: {},
        environment,
      },
      stack: 'hostile',
      templates: readTemplates(),
      patches: new Map(),
    });
    const entrypoint = encodeWord(`--entrypoint=${JSON.stringify(['python3', '-c', server])}`);
    const unit = release.unit.replace(release.image, () => `${entrypoint} ${release.image}`);
    await succeeds(`podman pull --quiet ${release.image}`);
    await succeeds(`cat >/run/systemd/system/${release.service}.service; systemctl daemon-reload`, unit);
    await succeeds(`systemctl start ${release.service}`);
    // What systemd made of the file, not what the file says.
    const effective = [
      'Description=frank-archon serving r9v',
      'Environment=',
      'KillMode=control-group',
      'LimitMEMLOCK=8388608',
      'LimitNOFILE=1048576',
      'Restart=always',
      'TasksMax=infinity',
      'TimeoutStartUSec=infinity',
      'TimeoutStopUSec=30s',
    ];
    const names = effective.map((line) => line.split('=')[0]).join(',');
    const shown = await succeeds(`systemctl show --property=${names} ${release.service}`);
    expect(shown.trim().split('\n').sort()).toEqual(effective);
    const pid = (await succeeds(`podman inspect --format '{{.State.Pid}}' ${release.container}`)).trim();
    const commandLine = nulSeparated(await succeeds(`base64 -w0 /proc/${pid}/cmdline`));
    const limits = await succeeds(`cat /proc/${pid}/limits`);
    expect(limits).toMatch(/^Max locked memory +8388608 +8388608 /m);
    const variables = nulSeparated(await succeeds(`base64 -w0 /proc/${pid}/environ`));
    await succeeds(`systemctl stop ${release.service}`);
    expect(commandLine.slice(3)).toEqual(release.arguments);
    expect(commandLine.slice(9)).toEqual(hostileWords);
    const wanted = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
    expect(variables.filter((variable) => variable.startsWith('HOSTILE_')).sort()).toEqual(wanted.sort());
  });

  /** What a program gets from systemd for these words of a unit file. */
  async function wordsBehind(encoded: readonly string[]): Promise<string[]> {
    const line = ['/usr/bin/printf', encodeWord('%s\\0'), ...encoded].join(' \\\n    ');
    const unit = `[Service]\nType=oneshot\nStandardOutput=truncate:/run/words\nExecStart=${line}\n`;
    await succeeds('cat >/run/systemd/system/words.service; systemctl daemon-reload', unit);
    await succeeds('systemctl start words.service');
    return nulSeparated(await succeeds('base64 -w0 /run/words'));
  }

  async function succeeds(command: string, input = ''): Promise<string> {
    const { exitCode, stdout, stderr } = await lab.ssh(command, { root: true, input });
    if (exitCode !== 0) throw new Error(`${command}: exit status ${exitCode}: ${stderr}`);
    return stdout;
  }
});

function nulSeparated(base64: string): string[] {
  return Buffer.from(base64, 'base64').toString().split('\0').slice(0, -1);
}
