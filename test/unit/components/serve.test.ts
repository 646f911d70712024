import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as pulumi from '@pulumi/pulumi';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { manifestText } from '../../../components/intent.ts';
import { serveShape } from '../../../components/serve.ts';
import { type InspectAnswer, inspectHost } from '../../../remote/inspect.ts';
import { SshFailure } from '../../../remote/ssh.ts';
import type { Inspection } from '../../../shape/inspection.ts';
import { claimOfQwen, host, inspection, occupant, outcome, qwen, release } from './samples.ts';

vi.mock('../../../remote/inspect.ts');

const glm = release();
const silent: InspectAnswer = {
  kind: 'unreachable',
  failure: new SshFailure('unreachable', 'dank@10.0.0.5:22: not reachable'),
};
let folder: string;
let registered: { type: string; inputs: Record<string, unknown> }[];

beforeEach(async () => {
  vi.spyOn(pulumi.log, 'info').mockResolvedValue();
  vi.spyOn(pulumi.log, 'warn').mockResolvedValue();
  folder = await mkdtemp(join(tmpdir(), 'serve-'));
});
afterEach(async () => {
  await settled();
  await rm(folder, { recursive: true, force: true });
});

/** What a component registers after its last output is known must not reach the next program's mocks. */
function settled(): Promise<void> {
  return pulumi.runtime.disconnect();
}

async function run(mode: 'preview' | 'update', answer: InspectAnswer | Partial<Inspection>, wanted = glm) {
  registered = [];
  await pulumi.runtime.setMocks(
    {
      newResource: ({ type, inputs, name }) => {
        registered.push({ type, inputs });
        return { id: name, state: { ...inputs, stdout: JSON.stringify(outcome) } };
      },
      call: () => ({}),
    },
    'slot',
    wanted.shape,
    mode === 'preview',
  );
  vi.mocked(inspectHost).mockResolvedValue(
    'kind' in answer
      ? (answer as InspectAnswer)
      : { kind: 'inspected', inspection: inspection(answer as Partial<Inspection>) },
  );
  const shape = await serveShape(folder, wanted.shape, { host, release: wanted });
  await new Promise((resolve) => shape.outcome.apply(resolve));
  await settled();
}

function sentManifest(): unknown {
  return registered.find(({ type }) => type === 'command:remote:Command')?.inputs.stdin;
}

describe('a preview', () => {
  it('asks about the release that is wanted', async () => {
    await run('preview', {});
    expect(inspectHost).toHaveBeenLastCalledWith(host, glm);
  });

  it('shows the static plan of a host that does not answer', async () => {
    await run('preview', silent);
    expect(pulumi.log.warn).toHaveBeenCalledWith('dank@10.0.0.5:22: not reachable');
    expect(sentManifest()).toContain('host not asked');
  });

  it('says what it is about, an update does not', async () => {
    await run('preview', {});
    expect(pulumi.log.info).toHaveBeenCalledWith(expect.stringContaining('cutover to glm-w4a16'));
    vi.mocked(pulumi.log.info).mockClear();
    await run('update', {});
    expect(pulumi.log.info).not.toHaveBeenCalled();
  });

  it('shows Pulumi no difference while the wanted release serves', async () => {
    await run('preview', {}, qwen);
    expect(sentManifest()).toBe(manifestText(claimOfQwen, qwen));
  });

  it('that was refused leaves no earlier one to be compared with', async () => {
    await run('preview', {});
    const quarantine = { at: '2026-11-29T09:00:00Z', stage: 'take', message: 'exit 1' };
    await expect(run('preview', { quarantine })).rejects.toThrow();
    expect(await readdir(join(folder, '.slot'))).toEqual([]);
  });

  it('fails on what an update would refuse, with the reason and no resource', async () => {
    const quarantine = { at: '2026-11-29T09:00:00Z', stage: 'prove: completion', message: 'empty answer' };
    await expect(run('preview', { quarantine })).rejects.toThrow(/prove: completion.*empty answer/s);
    expect(registered).toEqual([]);
  });
});

describe('an update', () => {
  it('sends the claim of the epoch that its preview showed', async () => {
    await run('preview', { epoch: 12 });
    const shown = sentManifest();
    await run('update', { epoch: 12 });
    expect(sentManifest()).toBe(shown);
  });

  it('ends before any resource when the occupant changed after its preview', async () => {
    await run('preview', { epoch: 12 });
    const moved = {
      epoch: 13,
      occupant: occupant(release({ shape: 'r9v-q8_0' })),
      changed: 'ann (cutover of r9v-q8_0)',
    };
    await expect(run('update', moved)).rejects.toThrow(
      /epoch 12 \(qwen-fp8-mtp4\).*epoch 13 \(r9v-q8_0\).*ann/s,
    );
    expect(registered).toEqual([]);
  });

  it('ends before any resource when its preview had not reached the host', async () => {
    await run('preview', silent);
    await expect(run('update', {})).rejects.toThrow(/did not reach the host/);
    expect(registered).toEqual([]);
  });

  it('ends before any resource when the host does not answer', async () => {
    await expect(run('update', silent)).rejects.toThrow(/not reachable[\s\S]*Nothing was touched/);
    expect(registered).toEqual([]);
  });

  it('ends before any resource on a host that is not set up', async () => {
    const bare: InspectAnswer = { kind: 'not-set-up', message: 'run `pulumi up -s dankserver` first' };
    await expect(run('update', bare)).rejects.toThrow(/pulumi up -s dankserver/);
    expect(registered).toEqual([]);
  });

  it('ends before any resource when something foreign is in the way', async () => {
    const findings = [
      { severity: 'refuse' as const, subject: 'container', message: 'frank-archon-glm is not ours' },
    ];
    await expect(run('update', { findings })).rejects.toThrow(/frank-archon-glm is not ours/);
    expect(registered).toEqual([]);
  });
});
