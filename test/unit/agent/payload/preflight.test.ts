import { beforeEach, describe, expect, it } from 'vitest';
import { preflight } from '../../../../agent/preflight.ts';
import { Progress } from '../../../../agent/progress.ts';
import { Store } from '../../../../agent/store.ts';
import { type Release, releaseIdOf } from '../../../../shape/release.ts';
import { planned } from '../../shape/rules/rule-cases.ts';
import { SimulatedHost } from '../simulated-host.ts';

const places = { host: { gpus: [], deviceFiles: [] }, shape: { payload: { expected: undefined } } };
const glm = planned('glm-w4a16', places);
const qwen = planned('qwen-fp8-mtp4', places);

let host: SimulatedHost;
let said: string[];

beforeEach(() => {
  host = new SimulatedHost(glm.service, [glm, qwen]);
  said = [];
});

async function faultOf(release: Release): Promise<string | undefined> {
  const progress = new Progress(host, async (line) => void said.push(line));
  const store = new Store(host, release.service);
  try {
    await preflight({ outside: host, service: release.service, progress, store, release });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function file(release: Release, name: string): string {
  return `${release.payload.folder}/${name}`;
}

/** Of which a preflight would come back to the other. */
async function occupy(release: Release): Promise<void> {
  const store = new Store(host, release.service);
  await store.saveRelease(release);
  await store.saveSlot({
    version: 1,
    epoch: 3,
    changed: 'by a test',
    occupant: {
      shape: release.shape,
      releaseId: releaseIdOf(release),
      engineIdentity: release.engineIdentity,
      claim: { token: 'x', epoch: 2 },
      since: '2026-10-01T00:00:00Z',
    },
    previousReleaseId: null,
  });
}

describe('a preflight', () => {
  it('says and keeps what the payload holds', async () => {
    expect(await faultOf(glm)).toBeUndefined();
    const kept = await new Store(host, glm.service).preflight(releaseIdOf(glm));
    expect(kept.find(({ check }) => check === 'payload')?.result).toMatch(/1 file, 1 tensor/);
  });

  it('refuses a damaged payload with all that is wrong', async () => {
    host.files.set(file(glm, 'model.safetensors'), 'version https://git-lfs.github.com/spec/v1');
    host.files.delete(file(glm, 'tokenizer.json'));
    const fault = await faultOf(glm);
    expect(fault).toMatch(/model\.safetensors is a pointer of git-lfs/);
    expect(fault).toMatch(/it has no tokenizer/);
  });

  it('refuses a payload that the engine could not offload, whatever the preview saw', async () => {
    host.files.set(file(glm, 'config.json'), '{"quantization_config":{"quant_method":"compressed-tensors"}}');
    expect(await faultOf(glm)).toMatch(/expert offload of a payload with quantization compressed-tensors/);
  });

  it('says what it warns of, and goes on', async () => {
    host.files.set(file(glm, 'model.safetensors.incomplete'), '');
    expect(await faultOf(glm)).toBeUndefined();
    expect(said.join('\n')).toMatch(/warning: payload: model\.safetensors\.incomplete/);
  });

  it('refuses where the payload to come back to is damaged', async () => {
    await occupy(qwen);
    host.files.delete(file(qwen, 'model.safetensors'));
    expect(await faultOf(glm)).toMatch(
      /the payload of qwen-fp8-mtp4: payload: it holds no weights.*there would be no way back/,
    );
  });

  it('goes on where the payload to come back to is whole', async () => {
    await occupy(qwen);
    expect(await faultOf(glm)).toBeUndefined();
  });
});
