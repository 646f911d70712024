import type { Release } from '../release.ts';
import { normalPath } from './mounts.ts';
import type { Rule } from './rule.ts';
import { isOfFamily, speculationOf } from './served-model.ts';
import { isOff } from './settings.ts';

/** `model.safetensors` of GLM-5.3-Flash-DFlash2. */
const drafterBytes = 2_342_169_800;
const drafterSha256 = 'b038e1d9';

export const dflashDrafter: Rule = {
  id: 'dflash-drafter',
  severity: 'refuse',
  reason:
    'the engine accepts next to nothing that the drafter proposes; a measurement by hand read about 18 tok/s in a contaminated window, and the record trusts neither until a clean run of single requests',
  evidence: 'experiment on record: acceptance 1.00 to 1.38, decode 1.6 to 1.8 tok/s instead of 9.9',
  remedy: 'take slot:shape.engine.speculative out; for the clean run, except the shape in a window',
  examine: ({ release }) => {
    const speculation = speculationOf(release);
    if (speculation === undefined || !isOfFamily(release, 'glm')) return undefined;
    const { method, drafter, drafterOnHost = '', shown } = speculation;
    if (/dflash/i.test(method)) return shown;
    const named = [drafterOnHost, drafter].find((path) => /dflash/i.test(path));
    if (named !== undefined) return `${shown} and the drafter ${named}`;
    return isDrafterOnRecord(release, drafterOnHost)
      ? `${shown} and a drafter of the recorded weights in ${drafterOnHost}`
      : undefined;
  },
};

/** By what the shape expects of the folder, whatever it is called. */
function isDrafterOnRecord({ mounts = [] }: Release, drafterOnHost: string): boolean {
  const { files = {} } = mounts.find(({ source }) => normalPath(source) === drafterOnHost)?.expected ?? {};
  return Object.values(files).some(
    ({ bytes, sha256 = '' }) => bytes === drafterBytes || sha256.startsWith(drafterSha256),
  );
}

/** Alone it is a choice that others make as well. */
const alsoAlone = 'VLLM_USE_AOT_COMPILE';

/** Variables of the changelist, which turns each off. */
const changelist = ['R4D_GLM_FUSE_QKV_RMSNORM', 'VLLM_COMPILE_FULLGRAPH', alsoAlone];

/** Of what its patches 01 to 05 make. */
const patchedHashes = ['6e9cb81b', '0751852e', '732363bb', '84969993', 'c154115a'];

export const compileChangelist: Rule = {
  id: 'compile-changelist',
  severity: 'refuse',
  reason: 'an engine with the compile changelist does not boot',
  evidence: 'experiment on record: glm53-compile-01 to 05 with these three variables at 0',
  remedy: 'take the variables and the patches out',
  examine: ({ release }) => {
    if (!isOfFamily(release, 'glm')) return undefined;
    const { environment, secrets, patches } = release;
    const variables = changelist.filter(
      (name) => isOff(environment[name] ?? '') || secrets.some(({ variable }) => variable === name),
    );
    const found = [
      ...variables.map((name) => `${name}=${environment[name] ?? '[secret]'}`),
      ...patches.flatMap(changelistPatches),
    ];
    return found.length === 0 || (found.length === 1 && variables[0] === alsoAlone)
      ? undefined
      : found.join(', ');
  },
};

/** Those of its patches that a file is changed by, whatever they are called. */
function changelistPatches({ diffs, patchedSha256 }: Release['patches'][number]): readonly string[] {
  const makesRecorded = (text: string): boolean =>
    patchedHashes.some((hash) => new RegExp(`^Patched-SHA256:\\s*${hash}`, 'm').test(text));
  const named = diffs
    .filter(({ name, text }) => /(?<![a-z])compile[-_]?0[1-5](?!\d)/i.test(name) || makesRecorded(text))
    .map(({ name }) => name);
  const isRecorded = patchedHashes.some((hash) => patchedSha256.startsWith(hash));
  return named.length === 0 && isRecorded ? diffs.slice(-1).map(({ name }) => name) : named;
}
