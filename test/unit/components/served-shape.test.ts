import * as pulumi from '@pulumi/pulumi';
import { beforeEach, describe, expect, it } from 'vitest';
import { sshOptionsOf } from '../../../components/engine-image.ts';
import { manifestText } from '../../../components/intent.ts';
import { ServedShape } from '../../../components/served-shape.ts';
import type { HostConfig } from '../../../shape/host.ts';
import { memoryPlanOf } from '../../../shape/memory/plan.ts';
import { type Claim, releaseIdOf, sha256 } from '../../../shape/release.ts';
import { digest, host, outcome, release } from './samples.ts';

const glm = release();
const claim: Claim = { epoch: 12, token: 'occupant qwen-fp8-mtp4, epoch 12 → glm-w4a16' };

interface Registered {
  readonly type: string;
  readonly name: string;
  readonly inputs: Record<string, unknown>;
}

let registered: Registered[];
let stdout: string;

beforeEach(async () => {
  registered = [];
  stdout = JSON.stringify(outcome);
  await pulumi.runtime.setMocks({
    newResource: ({ type, name, inputs }) => {
      registered.push({ type, name, inputs });
      return { id: `${name}-id`, state: type === 'command:remote:Command' ? { ...inputs, stdout } : inputs };
    },
    call: () => ({}),
  });
});

function known<T>(output: pulumi.Output<T>): Promise<T> {
  return new Promise((resolve) => output.apply(resolve));
}

async function serve(changes: Partial<HostConfig> = {}, wanted = glm): Promise<ServedShape> {
  const shape = new ServedShape(wanted.shape, { host: { ...host, ...changes }, release: wanted, claim });
  await known(shape.outcome);
  await pulumi.runtime.disconnect();
  return shape;
}

function inputsOf(type: string): Record<string, unknown> {
  const found = registered.filter((resource) => resource.type === type);
  expect(found).toHaveLength(1);
  return found[0]?.inputs ?? {};
}

describe('a served shape', () => {
  it('registers parts whose names read like a plan', async () => {
    await serve();
    expect(registered.map(({ type, name }) => `${type.split(':').at(-1)} ${name}`).sort()).toEqual([
      'Command glm-w4a16-cutover-transaction',
      'Cutover glm-w4a16-cutover',
      'EngineImage glm-w4a16-image',
      'EngineUnit glm-w4a16-unit',
      'Payload glm-w4a16-payload',
      'RemoteImage glm-w4a16-image-pull',
      'ServedShape glm-w4a16',
      'docker glm-w4a16-image-store',
    ]);
  });

  it('gives what somebody else needs of it in plain text', async () => {
    const outputs = await known(pulumi.output((await serve()).outputs()));
    expect(outputs).toEqual({
      endpoint: 'http://10.0.0.5:7770',
      servedName: 'glm53-flash',
      publicName: 'frank',
      unit: 'frank-archon.service',
      releaseId: releaseIdOf(glm),
      engineIdentity: glm.engineIdentity,
      host: '10.0.0.5',
      user: 'dank',
      outcome,
      memory: memoryPlanOf(glm).figures,
    });
  });

  it('gives the memory plan as data, the same with every run', async () => {
    const memory = await known((await serve()).memory);
    expect(memory).toContainEqual({
      id: 'memory-gate',
      label: 'MemAvailable gate',
      scope: 'host',
      unit: 'bytes',
      amount: 230 * 2 ** 30,
      source: 'configured',
      formula: 'memoryGate of the host, once the old engine is gone',
    });
    expect(memory.map(({ source }) => source)).not.toContain('measured');
    expect(JSON.parse(JSON.stringify(memory))).toEqual(memory);
  });

  it('has an endpoint that a client can parse on an IPv6 host', async () => {
    const shape = await serve({ address: 'fd00::5' });
    expect(new URL(await known(shape.endpoint)).hostname).toBe('[fd00::5]');
  });

  it('shows its patched files', async () => {
    const patches = [
      {
        target: '/site-packages/vllm/a.py',
        baseSha256: digest,
        patchedSha256: digest,
        diffs: [{ name: 'a-01', text: '--- a' }],
      },
    ];
    await serve({}, release({ patches }));
    expect(registered.map(({ type }) => type)).toContain('slot:shape:PatchMounts');
  });
});

describe('the cutover', () => {
  it('runs the same short text on create and update, with the manifest on standard input', async () => {
    await serve();
    const inputs = inputsOf('command:remote:Command');
    expect(inputs).toMatchObject({
      create: 'sudo -n /usr/local/libexec/slot/slot cutover',
      update: 'sudo -n /usr/local/libexec/slot/slot cutover',
      stdin: manifestText(claim, glm),
      addPreviousOutputInEnv: false,
      logging: 'stderr',
    });
    expect(inputs).not.toHaveProperty('triggers');
  });

  it('checks the host key of the login it names', async () => {
    await serve();
    expect(inputsOf('command:remote:Command')).toMatchObject({
      connection: { value: { host: '10.0.0.5', port: 2222, user: 'dank', hostKey: host.hostKey } },
    });
  });

  it('empties the slot on a destroy only for the owner of its own claim', async () => {
    await serve();
    expect(inputsOf('command:remote:Command')).toMatchObject({
      delete: `sudo -n /usr/local/libexec/slot/slot vacate --service frank-archon --shape glm-w4a16 --claim ${sha256(claim.token).slice(0, 12)}`,
    });
  });

  it('uses no sudo where the login is root', async () => {
    await serve({ user: 'root' });
    expect(inputsOf('command:remote:Command')).toMatchObject({
      create: '/usr/local/libexec/slot/slot cutover',
    });
  });
});

describe('the engine image', () => {
  it('is pulled by digest into the host’s store and never taken away', async () => {
    await serve();
    expect(inputsOf('docker:index/remoteImage:RemoteImage')).toEqual({ name: glm.image, keepLocally: true });
    expect(inputsOf('pulumi:providers:docker')).toMatchObject({ host: 'ssh://dank@10.0.0.5:2222' });
  });

  it('trusts the configured host key alone, without a file of this machine', () => {
    const options = sshOptionsOf(host);
    expect(options).toContain('StrictHostKeyChecking=yes');
    expect(options).toContain(`KnownHostsCommand=/usr/bin/env echo slot-target ${host.hostKey}`);
    expect(options.filter((option) => /KnownHostsFile/.test(option))).toEqual([
      'UserKnownHostsFile=/dev/null',
      'GlobalKnownHostsFile=/dev/null',
    ]);
  });

  it('goes through the jump host with that one’s own key', () => {
    const jumpHost = { address: 'jump.example', sshPort: 22, user: 'ann', hostKey: 'ssh-ed25519 AAAAJUMP' };
    const proxy = sshOptionsOf({ ...host, jumpHost }).find((option) => option.startsWith('ProxyCommand='));
    expect(proxy).toContain("'KnownHostsCommand=/usr/bin/env echo slot-jump ssh-ed25519 AAAAJUMP'");
    expect(proxy).toMatch(/-l ann -W 10\.0\.0\.5:2222 jump\.example$/);
  });
});
