import { type Changes, planned, type RuleCases, withUnit } from '../rule-cases.ts';

const glm = (changes: Changes = {}) => planned('glm-w4a16', changes);
const r9v = (changes: Changes = {}) => planned('r9v-q8_0', changes);
const payload = '/home/dank/models/GLM-5.3-Flash-W4A16-AutoRound:/model:ro';
const mounted = (options: string) => withUnit(glm(), payload, payload.replace(/ro$/, options));
const at = (target: string) => glm({ shape: { mounts: [{ source: '/srv/a', target }] } });
/** A payload that a state folder of another spelling makes writable. */
const withPayload = (folder: string, state: string) => {
  const release = r9v();
  return withUnit(
    { ...release, payload: { ...release.payload, folder }, stateFolders: [state] },
    '/home/dank/r9v-state/q8xl:',
    `${state}:`,
  );
};
const hooked = (target: string, environment: object = {}, importGuard?: string) => {
  const release = glm({ shape: { mounts: [{ source: '/srv/hook', target }], environment } });
  return importGuard === undefined
    ? release
    : { ...release, review: { exceptions: {}, ...release.review, importGuard } };
};

export const cases: RuleCases = {
  'mounts-read-only': {
    fires: [
      { what: 'a payload that may be written', release: mounted('rw'), found: payload.replace(/ro$/, 'rw') },
      { what: 'what podman does unless it is told', release: withUnit(glm(), payload, payload.slice(0, -3)) },
      {
        what: 'a mount written in the other way',
        release: withUnit(glm(), `--volume=${payload}`, '--mount=type=bind,source=/srv/a,target=/model'),
      },
      {
        what: 'a state folder around the payload',
        release: r9v({ host: { stateRoots: ['/home'] }, shape: { state: { q8xl: 'dank' } } }),
      },
      {
        what: 'a state folder inside the payload',
        release: r9v({
          host: { stateRoots: ['/home/dank/models'] },
          shape: { state: { q8xl: 'Qwen3.8-Flash-Next-GGUF/state' } },
        }),
      },
      {
        what: 'a folder that is no state of this release',
        release: { ...r9v(), stateFolders: [] },
        found: '/home/dank/r9v-state/q8xl:/state/q8xl:rw',
      },
      { what: 'rw beside ro', release: mounted('ro,rw') },
      {
        what: 'a payload under another spelling',
        release: withPayload('//home/dank//models/GLM', '/home/dank/models/GLM/.'),
      },
      {
        what: 'a state folder around another mount',
        release: r9v({
          host: { stateRoots: ['/srv'] },
          shape: { mounts: [{ source: '/srv/drafts/a', target: '/draft' }], state: { q8xl: 'drafts' } },
        }),
      },
    ],
    silent: [
      { what: 'the payload as it is mounted', release: glm() },
      { what: 'state folders of its own', release: r9v() },
      {
        what: 'a mount written in the other way',
        release: withUnit(
          glm(),
          `--volume=${payload}`,
          '--mount=type=bind,source=/srv/a,target=/model,readonly',
        ),
      },
    ],
  },
  'state-apart-from-models': {
    fires: [
      {
        what: 'the payload of another shape as state',
        release: r9v({
          host: { stateRoots: ['/home/dank/models'] },
          shape: { state: { q8xl: 'GLM-5.3-Flash-W4A16-AutoRound' } },
        }),
        found: 'the models lie in /home/dank/models',
      },
      {
        what: 'the folder of all models as state',
        release: r9v({ host: { stateRoots: ['/home/dank'] }, shape: { state: { q8xl: 'models' } } }),
      },
      {
        what: 'a folder around it',
        release: r9v({ host: { stateRoots: ['/home'] }, shape: { state: { q8xl: 'dank' } } }),
      },
      {
        what: 'another spelling of it',
        release: withUnit(r9v(), '/home/dank/r9v-state/q8xl:', '/home//dank/./models/x:'),
      },
    ],
    silent: [
      { what: 'state folders of its own', release: r9v() },
      { what: 'no state', release: glm() },
      {
        what: 'a folder whose name begins like it',
        release: r9v({ host: { stateRoots: ['/home/dank/models-state'] }, shape: { state: { q8xl: 'a' } } }),
      },
      {
        what: 'a release of before it was known',
        release: { ...r9v({ host: { stateRoots: ['/home/dank/models'] } }), review: { exceptions: {} } },
      },
    ],
  },
  'mount-targets': {
    fires: [
      ...['/model/', '//model', '/model/.', '/./model', '/a/../model'].map((target) => ({
        what: `the payload's place as ${target}`,
        release: withUnit(
          glm({ shape: { mounts: [{ source: '/srv/a', target: '/x' }] } }),
          ':/x:',
          `:${target}:`,
        ),
        found: 'where something is mounted already',
      })),
      ...[
        '/',
        '//',
        '/proc',
        '/proc/sys',
        '/sys/fs',
        '/dev',
        '/dev/dri',
        '/usr',
        '/usr/',
        '/usr/lib',
        '/usr/bin',
      ].map((target) => ({ what: target, release: at(target), found: 'of the image' })),
      ...['/etc', '/lib64', '/opt', '/root', '/run', '/var', '/usr/local'].map((target) => ({
        what: target,
        release: at(target),
      })),
      {
        what: 'two of one target in another form',
        release: withUnit(
          glm(),
          `--volume=${payload}`,
          `--volume=${payload} --mount=type=bind,source=/srv/a,target=/model,readonly`,
        ),
      },
    ],
    silent: [
      { what: 'the shape as it is', release: glm() },
      { what: 'state folders', release: r9v() },
      ...[
        '/draft',
        '/model/draft',
        '/etc/vllm',
        '/opt/drafts',
        '/dev/shm',
        '/usr/share/a',
        '/root/.cache',
      ].map((target) => ({ what: target, release: at(target) })),
    ],
  },
  'mounts-not-relabelled': {
    fires: [
      { what: 'z', release: mounted('ro,z') },
      { what: 'Z', release: mounted('Z') },
      {
        what: 'relabel',
        release: withUnit(
          glm(),
          `--volume=${payload}`,
          '--mount=type=bind,source=/srv/a,target=/model,ro,relabel=shared',
        ),
      },
    ],
    silent: [
      { what: 'the payload as it is mounted', release: glm() },
      { what: 'state folders', release: r9v() },
    ],
  },
  'guarded-import-hook': {
    fires: [
      {
        what: 'a sitecustomize',
        release: hooked('/hook/sitecustomize.py', { PYTHONPATH: '/hook' }),
        found: '/hook/sitecustomize.py',
      },
      { what: 'one among the packages', release: hooked('/usr/lib/python3/dist-packages/sitecustomize.py') },
      { what: 'a usercustomize', release: hooked('/root/.local/usercustomize.py') },
      { what: 'a .pth file', release: hooked('/usr/lib/python3/dist-packages/hook.pth') },
      { what: 'a folder that may hold one', release: hooked('/hook', { PYTHONPATH: '/opt/a:/hook' }) },
      { what: 'a folder around one', release: hooked('/hook', { PYTHONPATH: '/hook/python' }) },
      ...['/hook/', '//hook', '/./hook', '/a/../hook', '/hook/.', '/opt/a:/hook/:/b'].map((path) => ({
        what: `the path ${path}`,
        release: hooked('/hook', { PYTHONPATH: path }),
      })),
      ...['/hook/', '//hook', '/hook/./'].map((target) => ({
        what: `the target ${target}`,
        release: hooked(target, { PYTHONPATH: '/hook' }),
      })),
      ...['hook', ':/opt/a', '/opt/a:', '/opt/a::/opt/b', '.', '../hook'].map((path) => ({
        what: `the path ${path}, which begins nobody knows where`,
        release: hooked('/app/hook', { PYTHONPATH: path }),
      })),
      ...[
        'sitecustomize.pyc',
        'sitecustomize.so',
        'sitecustomize.cpython-312-x86_64-linux-gnu.so',
        'sitecustomize',
        'sitecustomize/',
        'sitecustomize/__init__.py',
        'usercustomize.pyc',
        'usercustomize/__init__.py',
        './/sitecustomize.py',
      ].map((name) => ({ what: name, release: hooked(`/opt/a/${name}`) })),
      ...[
        '/usr/lib/python3/dist-packages',
        '/usr/local/lib/python3.12/dist-packages/',
        '/opt/venv/lib/python3.12/site-packages',
        '/opt/venv',
        '/usr/local/lib/python3.12',
        '/root/.local',
        '/root/.local/lib',
      ].map((target) => ({ what: `a folder over ${target}`, release: hooked(target) })),
      { what: 'a .pth file in a venv', release: hooked('/opt/venv/lib/python3.12/site-packages/a.pth') },
      {
        what: 'a path that is a secret',
        release: glm({ shape: { secrets: { PYTHONPATH: { version: '1' } } } }),
        found: 'PYTHONPATH is a secret',
      },
      { what: 'another home of Python', release: hooked('/hook', { PYTHONHOME: '/hook' }) },
      { what: 'a home around it', release: hooked('/hook/lib', { PYTHONHOME: '/hook' }) },
      { what: "a user's packages", release: hooked('/hook', { PYTHONUSERBASE: '/hook' }) },
      { what: 'the payload on the path', release: glm({ shape: { environment: { PYTHONPATH: '/model' } } }) },
    ],
    silent: [
      { what: 'a guard variable', release: hooked('/hook', { PYTHONPATH: '/hook' }, 'FRANK_HOOK_RUNS') },
      { what: 'a folder that Python does not search', release: hooked('/draft', { PYTHONPATH: '/opt/a' }) },
      {
        what: 'weights of that ending',
        release: hooked('/draft/consolidated.00.pth', { PYTHONPATH: '/opt/a' }),
      },
      { what: 'a folder of one package', release: hooked('/usr/lib/python3/dist-packages/vllm') },
      { what: 'a name that only begins so', release: hooked('/opt/a/sitecustomized.py') },
      { what: 'a path without a value', release: hooked('/hook', { PYTHONPATH: '' }) },
      { what: 'a folder below the path', release: hooked('/opt/a/pkg', { PYTHONPATH: '/opt/a' }) },
      {
        what: 'a path that begins nowhere, and no mount',
        release: glm({ shape: { environment: { PYTHONPATH: ':/opt/a' } } }),
      },
      { what: 'PYTHONPATH alone', release: glm({ shape: { environment: { PYTHONPATH: '/opt/a' } } }) },
      { what: 'nothing of it', release: glm() },
    ],
  },
  'selinux-label': {
    fires: [
      { what: 'labels that keep the engine out', release: glm({ host: { selinux: 'enforcing' } }) },
      {
        what: 'another label',
        release: glm({ host: { selinux: 'enforcing', securityOptions: ['label=type:disable'] } }),
      },
    ],
    silent: [
      {
        what: 'labels off',
        release: glm({ host: { selinux: 'enforcing', securityOptions: ['label=disable'] } }),
      },
      {
        what: 'labels off in the old form',
        release: glm({ host: { selinux: 'enforcing', securityOptions: ['label:disable'] } }),
      },
      { what: 'SELinux permissive', release: glm({ host: { selinux: 'permissive' } }) },
      { what: 'no SELinux', release: glm({ host: { selinux: 'disabled' } }) },
    ],
  },
};
