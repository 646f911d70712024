import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { inspect } from '../../../../agent/inspect.ts';
import { Progress } from '../../../../agent/progress.ts';
import { Store } from '../../../../agent/store.ts';
import { cutover } from '../../../../agent/transaction.ts';
import { inOrder } from '../../../../shape/payload-manifest.ts';
import { claimOf, type Release, sha256 } from '../../../../shape/release.ts';
import { release } from '../../components/samples.ts';
import { SimulatedHost } from '../simulated-host.ts';

/** As the simulated host lays a payload out. */
const files = new SimulatedHost('layout', [plain('laid')]).files;
const manifest = inOrder(
  [...files]
    .filter(([path]) => path.startsWith('/home/dank/models/laid/'))
    .map(([path, content]) => ({
      name: path.slice('/home/dank/models/laid/'.length),
      size: content.length,
      sha256: sha256(content),
    })),
);
const weights = manifest.find(({ name }) => name === 'model.safetensors');
const tokenizer = manifest.find(({ name }) => name === 'tokenizer.json');

function plain(shape: string): Release {
  const { review: _, ...rest } = release();
  return {
    ...rest,
    shape,
    container: `frank-archon-${shape}`,
    engineKind: 'vllm',
    engineIdentity: sha256(shape),
    unit: `[Service]\nExecStart=/usr/bin/podman run ${shape}\n`,
    arguments: ['--model', '/model'],
    servedNames: [shape],
    checks: [{ kind: 'models' }],
    deviceFiles: [],
    gpus: [],
    memoryGateBytes: 0,
    payload: { folder: `/home/dank/models/${shape}` },
  };
}

function sealed(shape: string, changes: Partial<Release['payload']> = {}): Release {
  const release = plain(shape);
  return { ...release, payload: { ...release.payload, verify: 'hashes', manifest, ...changes } };
}

const glm = sealed('glm');
const qwen = sealed('qwen');

/** As long as what it replaces: only its hash tells. */
const changed = '{"model":[]}';

let host: SimulatedHost;
let said: string[];

async function cutoverTo(wanted: Release) {
  const store = new Store(host, wanted.service);
  const { epoch, occupant } = await store.slot();
  const progress = new Progress(host, async (line) => void said.push(line));
  const claim = claimOf({ epoch, occupant: occupant?.shape }, wanted);
  const context = { outside: host, service: wanted.service, store, by: 'dank', progress };
  return cutover(context, { release: wanted, claim, expectedEpoch: epoch });
}

/** Each reading that was begun, of whichever payload. */
const readings = () => host.calls.filter((call) => / hash --service=/.test(call)).length;

beforeEach(async () => {
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  said = [];
  host = new SimulatedHost(glm.service, [glm, qwen]);
  expect(await cutoverTo(qwen)).toMatchObject({ message: 'qwen serves and is proved' });
});

afterEach(() => vi.restoreAllMocks());

describe('a shape that asks for hashes', () => {
  it('is tried where every file is as sealed', async () => {
    expect(await cutoverTo(glm)).toMatchObject({ kind: 'serving', serves: 'glm' });
    expect(said.join('\n')).toMatch(
      /payload hashes: \/home\/dank\/models\/glm: \d+ files, .* B, hashes as sealed/,
    );
  });

  it('is not tried without a manifest, and says how to get one', async () => {
    const unsealed = sealed('glm', { manifest: undefined });
    expect(await cutoverTo(unsealed)).toMatchObject({
      kind: 'refused',
      stage: 'preflight: payload hashes',
      message: '/home/dank/models/glm has no manifest: npx slot payload seal glm',
    });
    expect(host.serves()).toBe('qwen');
  });

  it('is not tried with another file in the place of a sealed one', async () => {
    host.files.set('/home/dank/models/glm/tokenizer.json', changed);
    const outcome = await cutoverTo(glm);
    expect(outcome).toMatchObject({ kind: 'refused', stage: 'preflight: payload hashes' });
    expect(outcome.message).toContain(
      `tokenizer.json has sha256 ${sha256(changed)}, expected ${tokenizer?.sha256}`,
    );
    expect(host.serves()).toBe('qwen');
  });

  it('is not tried with another drafter than the one on record', async () => {
    const source = '/home/dank/models/draft';
    host.folders.add(source);
    for (const [path, content] of files)
      host.files.set(path.replace('/home/dank/models/laid', source), content);
    const expected = { files: { 'model.safetensors': { sha256: 'b038e1d9' } } };
    const unit = `[Service]\nExecStart=/usr/bin/podman run --volume=${source}:/draft:ro glm\n`;
    const drafted = { ...glm, unit, mounts: [{ source, target: '/draft', manifest, expected }] };
    const outcome = await cutoverTo(drafted);
    expect(outcome).toMatchObject({ kind: 'refused', stage: 'preflight: payload hashes' });
    expect(outcome.message).toContain(
      `model.safetensors has sha256 ${weights?.sha256} sealed, on record is b038e1d9`,
    );
  });
});

describe('a payload that was replaced in its place, and sealed anew', () => {
  const resealed = sealed('qwen', {
    manifest: manifest.map((file) =>
      file.name === 'tokenizer.json' ? { ...file, sha256: sha256(changed) } : file,
    ),
  });

  it('is not recorded as served by the engine that has loaded the one before, and there is no way back', async () => {
    host.files.set('/home/dank/models/qwen/tokenizer.json', changed);
    const outcome = await cutoverTo(resealed);
    expect(outcome).toMatchObject({ kind: 'refused', stage: 'preflight: rollback set' });
    expect(outcome.message).toContain('There would be no way back to qwen');
  });

  it('is no matter of a seal that was taken for the first time', async () => {
    host = new SimulatedHost(glm.service, [glm, qwen]);
    await cutoverTo(plain('qwen'));
    const { starts } = host;
    expect(await cutoverTo(qwen)).toMatchObject({ kind: 'serving' });
    expect(host.starts).toBe(starts);
  });
});

describe('a preview', () => {
  const findings = async (wanted: Release) => {
    const store = new Store(host, wanted.service);
    const inspection = await inspect(host, store, wanted.service, 'test', wanted);
    return inspection.findings.filter(
      ({ subject, message }) => subject === 'payload' && /sealed|seal|read/.test(message),
    );
  };

  it('says how much is to be read before the stop, and how to have it read beforehand', async () => {
    const [finding] = await findings(glm);
    expect(finding?.severity).toBe('note');
    expect(finding?.message).toMatch(
      /glm: 4 of 4 files, .*, are to be read before the stop; npx slot payload verify glm reads them beforehand/,
    );
  });

  it('says that nothing was touched since', async () => {
    const before = readings();
    expect(await findings(qwen)).toMatchObject([
      { severity: 'note', message: expect.stringContaining('nothing was touched') },
    ]);
    expect(readings()).toBe(before);
  });

  it('refuses what names and sizes tell already', async () => {
    host.files.set('/home/dank/models/glm/tokenizer.json', '{"model":{} }');
    host.files.set('/home/dank/models/glm/more.txt', '');
    expect(await findings(glm)).toMatchObject([
      {
        severity: 'refuse',
        message:
          '/home/dank/models/glm is not as sealed: tokenizer.json has 13 bytes, expected 12: 1 byte too many, more.txt is not in the manifest',
      },
    ]);
  });

  it('refuses a shape without a manifest', async () => {
    expect(await findings(sealed('glm', { manifest: undefined }))).toMatchObject([
      { severity: 'refuse', message: '/home/dank/models/glm has no manifest: npx slot payload seal glm' },
    ]);
  });

  it('says nothing of seals where an inventory is asked for', async () => {
    expect(await findings(plain('glm'))).toEqual([]);
  });
});

describe('a way back', () => {
  it('is promised without another reading where nothing was touched', async () => {
    const before = readings();
    expect(await cutoverTo(glm)).toMatchObject({ kind: 'serving' });
    expect(readings() - before).toBe(1);
  });

  it('is not promised to a payload that is another by now', async () => {
    host.files.set('/home/dank/models/qwen/tokenizer.json', changed);
    const outcome = await cutoverTo(glm);
    expect(outcome).toMatchObject({ kind: 'refused', stage: 'preflight: rollback set' });
    expect(outcome.message).toContain('There would be no way back to qwen');
    expect(host.serves()).toBe('qwen');
  });
});
