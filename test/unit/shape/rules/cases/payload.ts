import type { Release } from '../../../../../shape/release.ts';
import { planned, type RuleCase, type RuleCases } from '../rule-cases.ts';

const flagged = (flag: string) =>
  planned('qwen-fp8-mtp4', { shape: { engine: { extraArguments: ['--quantization', flag] } } });

function pair(method: string | null, flag: string): RuleCase {
  return {
    what: `${flag} of a payload of ${method}`,
    release: flagged(flag),
    measured: { quantization: method },
  };
}

const expectedFp8 = planned('qwen-fp8-mtp4', {
  shape: { engine: { extraArguments: ['--quantization', 'gptq'] }, payload: { quantization: 'fp8' } },
});
const none = planned('qwen-fp8-mtp4');

/** Of each way in which method and flag go together, some. */
const same = [
  pair('fp8', 'fp8'),
  pair('auto-round', 'inc'),
  pair('inc', 'auto-round'),
  pair('auto-round', 'auto-round'),
  pair('compressed_tensors', 'compressed-tensors'),
  pair('GPTQ', 'gptq'),
  pair(null, 'fp8'),
  { what: 'no flag', release: none, measured: { quantization: 'auto-round' } },
  { what: 'a payload of which nothing is known', release: flagged('gptq') },
];
const refused = [
  pair('auto-round', 'gptq'),
  pair('gptq', 'auto-round'),
  pair('gptq', 'inc'),
  pair('auto-round', 'gptq_marlin'),
  pair('compressed-tensors', 'awq'),
  pair('fp8', 'gguf'),
  pair('fp8', 'compressed-tensors'),
  pair(null, 'auto-round'),
  {
    what: 'gptq where the shape expects fp8',
    release: expectedFp8,
    found: 'quant_method of the payload is fp8',
  },
];
const uncertain = [
  pair('gptq', 'gptq_marlin'),
  pair('awq', 'awq_marlin'),
  pair('method-of-tomorrow', 'fp8'),
  pair('fp8', 'method-of-tomorrow'),
  pair('constructor', 'fp8'),
];

const manifest = [{ name: 'config.json', size: 2, sha256: 'a'.repeat(64) }];
const drafter = { source: '/home/dank/models/draft', target: '/draft' };

function asksForHashes(payload: object, mounts: Release['mounts'] = []): Release {
  return { ...none, mounts, payload: { ...none.payload, verify: 'hashes', ...payload } };
}

export const cases: RuleCases = {
  'payload-sealed': {
    fires: [
      { what: 'hashes without a manifest', release: asksForHashes({}), found: none.payload.folder },
      {
        what: 'hashes without the manifest of what is mounted beside',
        release: asksForHashes({ manifest }, [drafter]),
        found: 'no manifest of /home/dank/models/draft',
      },
    ],
    silent: [
      { what: 'an inventory', release: none },
      { what: 'hashes, all sealed', release: asksForHashes({ manifest }, [{ ...drafter, manifest }]) },
    ],
  },
  'quantization-flag': { fires: refused, silent: [...same, ...uncertain] },
  'quantization-flag-known': { fires: uncertain, silent: [...same, ...refused] },
};
