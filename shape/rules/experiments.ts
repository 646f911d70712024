import { unitTextOf } from '../unit-text.ts';
import type { Rule } from './rule.ts';
import { isOfFamily, speculationOf } from './served-model.ts';
import { settingsOf, shown } from './settings.ts';

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
    const { method, drafter } = speculation;
    if (/dflash/i.test(method)) return `--speculative-config with method ${method}`;
    const mounted = (unitTextOf(release).container?.values('--volume') ?? []).find(
      (volume) => drafter !== '' && volume.split(':')[1] === drafter && /dflash/i.test(volume),
    );
    return mounted && `--speculative-config with the drafter ${mounted}`;
  },
};

/** Variables of the changelist; it turns each off. */
const changelist = ['VLLM_COMPILE_FULLGRAPH', 'VLLM_USE_AOT_COMPILE', 'R4D_GLM_FUSE_QKV_RMSNORM'];

export const compileChangelist: Rule = {
  id: 'compile-changelist',
  severity: 'refuse',
  reason: 'an engine with the compile changelist does not boot',
  evidence: 'experiment on record: glm53-compile-01 to 05 with these three variables at 0',
  remedy: 'take the variables and the patches out',
  examine: ({ release }) => {
    if (!isOfFamily(release, 'glm')) return undefined;
    const found = [
      ...settingsOf(release)
        .filter(({ written, value, isOn }) => changelist.includes(written) && value !== '' && !isOn)
        .map(shown),
      ...release.patches
        .flatMap(({ diffs }) => diffs)
        .map(({ name }) => name)
        .filter((name) => /glm53-compile-0[1-5]/.test(name)),
    ];
    return found.length === 0 ? undefined : found.join(', ');
  },
};
