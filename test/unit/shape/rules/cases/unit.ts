import { createPatch } from 'diff';
import { hostileWords } from '../../../../fixtures/hostile-words.ts';
import { planned, type RuleCases, r9vWith, withUnit } from '../rule-cases.ts';

const glm = planned('glm-w4a16');
const changed = (present: string, instead: string) => withUnit(glm, present, instead);
const variables = (environment: object) => planned('glm-w4a16', { shape: { environment } });
const extra = (...extraArguments: string[]) =>
  planned('glm-w4a16', { shape: { engine: { extraArguments } } });
const boot = (minutes: number, environment: object = {}) =>
  planned('glm-w4a16', { shape: { environment, deadlines: { boot: { seconds: 60 * minutes } } } });

const json = '{"stop": ["\\n\\n"], "t": "100 % of $HOME, \\"%h\\""}';
const target = '/usr/lib/python3/dist-packages/vllm/a.py';
const diff = (added: string) =>
  [
    `Target: ${target}`,
    `Base-SHA256: ${'1'.repeat(64)}`,
    `Patched-SHA256: ${'2'.repeat(64)}`,
    createPatch(target.slice(1), 'old\n', `${added}\n`),
  ].join('\n');
const patched = (added: string) =>
  planned('glm-w4a16', { shape: { patches: ['a.patch'] }, patches: { 'a.patch': diff(added) } });
export const cases: RuleCases = {
  'words-survive': {
    fires: [
      {
        what: 'a single %',
        release: changed('--http-proxy=false', '--env=A=50%20'),
        found: 'systemd would replace',
      },
      { what: 'a specifier', release: changed('--http-proxy=false', '--label=%h') },
      {
        what: 'a specifier in a description',
        release: changed('serving glm', 'serving %n'),
        found: 'Description',
      },
      { what: 'a variable', release: changed('--http-proxy=false', `--label=\${HOME}`) },
      { what: 'a variable of its own', release: changed('--max-num-seqs 2', '--max-num-seqs $SEQS') },
      {
        what: 'a second command',
        release: changed('--http-proxy=false', '--http-proxy=false ; /usr/bin/touch /x'),
      },
      { what: 'an open quote', release: changed('--http-proxy=false', "'--http-proxy=false") },
      { what: 'an escape that systemd does not know', release: changed('--http-proxy=false', '--label=\\d') },
      {
        what: 'a word that the shape does not have',
        release: changed('--max-num-seqs 2', '--max-num-seqs 3'),
      },
      { what: 'a word too many', release: changed('--max-num-seqs 2', '--max-num-seqs 2 --enforce-eager') },
      {
        what: 'JSON without its inner quotes',
        release: withUnit(extra('--x', '{"a":1}'), `'{"a":1}'`, '{"a":1}'),
        found: '{a:1}',
      },
      {
        what: 'a variable that is not in the unit',
        release: { ...glm, environment: { ...glm.environment, A: '1' } },
      },
      { what: 'a variable with another value', release: changed('expandable_segments:True', 'x') },
      {
        what: 'a secret that is not in the unit',
        release: { ...glm, secrets: [{ variable: 'HF_TOKEN', name: 'frank-archon-HF_TOKEN-1' }] },
      },
      { what: 'another image', release: { ...glm, image: glm.image.replace('0000', '0001') } },
      { what: 'another program', release: changed('/usr/bin/podman run', '/usr/bin/docker run') },
      { what: 'variables of a file', release: changed('--http-proxy=false', '--env-file=/srv/env') },
      { what: 'a mount by its short name', release: changed('--http-proxy=false', '-v/srv:/srv') },
      { what: 'no program', release: { ...glm, unit: '[Service]\n' } },
    ],
    silent: [
      { what: 'the shape as it is', release: glm },
      { what: 'JSON in all its forms', release: extra('--a', json, `--b=${json}`) },
      {
        what: 'words that others lose',
        release: r9vWith(...hostileWords),
      },
      {
        what: 'values that others lose',
        release: variables(Object.fromEntries(hostileWords.map((word, index) => [`V${index}`, word]))),
      },
      {
        what: 'a secret',
        release: planned('glm-w4a16', { shape: { secrets: { HF_TOKEN: { version: '1' } } } }),
      },
      {
        what: 'paths with blanks and signs',
        release: planned('glm-w4a16', {
          shape: { payload: { folder: "/srv/my models/m%3Ax $a it's" } },
          host: { deviceFiles: ['/dev/a%20b'] },
        }),
      },
    ],
  },
  'host-ipc-without-size': {
    fires: [
      { what: 'both', release: changed('--ipc=host', '--ipc=host --shm-size=16g'), found: '--shm-size=16g' },
    ],
    silent: [
      { what: "the host's", release: glm },
      { what: 'a size of its own', release: changed('--ipc=host', '--shm-size=16g') },
    ],
  },
  'start-without-timeout': {
    fires: [
      { what: 'a finite one', release: changed('TimeoutStartSec=infinity', 'TimeoutStartSec=30min') },
      { what: "systemd's default", release: changed('TimeoutStartSec=infinity', '') },
      {
        what: 'a later line',
        release: changed('RestartSec=10', 'RestartSec=10\nTimeoutSec=900'),
        found: 'TimeoutSec=900',
      },
      {
        what: 'what systemd ignores',
        release: changed('TimeoutStartSec=infinity', 'TimeoutStartSec=forever'),
      },
    ],
    silent: [
      { what: 'none', release: glm },
      {
        what: 'systemd’s other word for it',
        release: changed('TimeoutStartSec=infinity', 'TimeoutStartSec=0'),
      },
    ],
  },
  'ready-timeout': {
    fires: [
      { what: "the engine's default under a longer budget", release: withoutReady(25), found: '600 s' },
      {
        what: 'less than the budget',
        release: boot(25, { VLLM_ENGINE_READY_TIMEOUT_S: '1499' }),
        found: '1500 s',
      },
      { what: 'what is no number', release: boot(25, { VLLM_ENGINE_READY_TIMEOUT_S: '25min' }) },
    ],
    silent: [
      { what: 'the budget itself', release: boot(25, { VLLM_ENGINE_READY_TIMEOUT_S: '1500' }) },
      { what: "the engine's default over the budget", release: withoutReady(10) },
      {
        what: 'another engine',
        release: planned('r9v-q8_0', { shape: { deadlines: { boot: { seconds: 6000 } } } }),
      },
    ],
  },
  'stop-in-order': {
    fires: [
      {
        what: 'podman that waits too long',
        release: changed('--time 0', '--time 30'),
        found: 'podman waits 30 s',
      },
      {
        what: "podman's own patience",
        release: changed('TimeoutStopSec=30', 'ExecStop=/usr/bin/podman stop x\nTimeoutStopSec=10'),
      },
      {
        what: 'systemd that waits longer than the cutover',
        release: changed('TimeoutStopSec=30', 'TimeoutStopSec=60'),
      },
      {
        what: 'systemd that waits for ever',
        release: changed('TimeoutStopSec=30', 'TimeoutStopSec=infinity'),
      },
      { what: "systemd's default", release: changed('TimeoutStopSec=30', '') },
      {
        what: 'a budget of the cutover that is too short',
        release: planned('glm-w4a16', { shape: { deadlines: { stop: { seconds: 30 } } } }),
      },
      { what: 'processes left to run', release: changed('KillMode=control-group', 'KillMode=none') },
      {
        what: 'children left to run',
        release: changed('KillMode=control-group', 'KillMode=process'),
        found: 'KillMode=process',
      },
      { what: 'an engine that takes its time', release: extra('--shutdown-timeout', '30') },
    ],
    silent: [
      { what: 'the shape as it is', release: glm },
      { what: 'a span in words', release: changed('TimeoutStopSec=30', 'TimeoutStopSec=0min 45s') },
      { what: 'podman that waits less', release: changed('--time 0', '--time 29') },
      { what: 'another engine', release: planned('r9v-q8_0') },
    ],
  },
  'no-moving-text': {
    fires: [
      {
        what: 'a time',
        release: changed('[Unit]', '# rendered 2026-11-29T19:00:41Z\n[Unit]'),
        found: 'a time',
      },
      { what: 'a time in words', release: changed('[Unit]', '# Sun Nov 29 19:00:41 UTC 2026\n[Unit]') },
      { what: 'a time in a name', release: variables({ RUN: 'run-20261129T190041Z' }) },
      {
        what: 'a UUID',
        release: variables({ RUN: '0b5e7c52-6f2f-4c0a-9c7b-0f6b1f3a9d11' }),
        found: 'RUN holds a UUID',
      },
      { what: 'a temporary path', release: extra('--cache', '/tmp/tmp.Xk29sdTq0a') },
      {
        what: 'a UUID beside that of a disk',
        release: planned('glm-w4a16', {
          shape: {
            payload: { folder: '/run/media/dank/0b5e7c52-6f2f-4c0a-9c7b-0f6b1f3a9d11/GLM' },
            environment: { RUN: '1b5e7c52-6f2f-4c0a-9c7b-0f6b1f3a9d11' },
          },
        }),
      },
      { what: 'the id of a container', release: extra('--container', 'c'.repeat(64)) },
      { what: 'a time in the target', release: { ...glm, target: '# 2026-11-29 19:00\n' } },
    ],
    silent: [
      { what: 'the shape as it is', release: glm },
      { what: 'hashes of what it is', release: patched('x = 1') },
      {
        what: 'a date in a name',
        release: planned('glm-w4a16', { shape: { payload: { folder: 'GLM-2026-10-01' } } }),
      },
      {
        what: 'a payload on a disk that is mounted by its UUID',
        release: planned('glm-w4a16', {
          shape: { payload: { folder: '/run/media/dank/0b5e7c52-6f2f-4c0a-9c7b-0f6b1f3a9d11/GLM' } },
        }),
      },
      {
        what: 'a mount named by its hash',
        release: planned('glm-w4a16', {
          shape: { mounts: [{ source: `/srv/blobs/${'c'.repeat(64)}`, target: '/draft' }] },
        }),
      },
      {
        what: 'the UUID of a GPU',
        release: variables({ CUDA_VISIBLE_DEVICES: 'GPU-0b5e7c52-6f2f-4c0a-9c7b-0f6b1f3a9d11' }),
      },
    ],
  },
};

function withoutReady(minutes: number) {
  const { VLLM_ENGINE_READY_TIMEOUT_S: _, ...environment } = boot(minutes).environment;
  return { ...boot(minutes), environment };
}
