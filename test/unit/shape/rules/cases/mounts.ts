import { type Changes, planned, type RuleCases, withUnit } from '../rule-cases.ts';

const glm = (changes: Changes = {}) => planned('glm-w4a16', changes);
const r9v = (changes: Changes = {}) => planned('r9v-q8_0', changes);
const payload = '/home/dank/models/GLM-5.3-Flash-W4A16-AutoRound:/model:ro';
const mounted = (options: string) => withUnit(glm(), payload, payload.replace(/ro$/, options));
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
    ],
    silent: [
      { what: 'a guard variable', release: hooked('/hook', { PYTHONPATH: '/hook' }, 'FRANK_HOOK_RUNS') },
      { what: 'a folder that Python does not search', release: hooked('/draft', { PYTHONPATH: '/opt/a' }) },
      { what: 'PYTHONPATH alone', release: glm({ shape: { environment: { PYTHONPATH: '/opt/a' } } }) },
      { what: 'nothing of it', release: glm() },
    ],
  },
  'selinux-label': {
    fires: [{ what: 'labels that keep the engine out', release: glm({ host: { selinux: 'enforcing' } }) }],
    silent: [
      {
        what: 'labels off',
        release: glm({ host: { selinux: 'enforcing', securityOptions: ['label=disable'] } }),
      },
      { what: 'SELinux permissive', release: glm({ host: { selinux: 'permissive' } }) },
      { what: 'no SELinux', release: glm({ host: { selinux: 'disabled' } }) },
    ],
  },
};
