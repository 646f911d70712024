import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { manifestText } from '../../../components/intent.ts';
import { slotProgram } from '../../../shape/names.ts';
import { claimOf, type Release } from '../../../shape/release.ts';
import { connectionRules } from '../../../shape/rules/connection.ts';
import { isUnconditional, ruleIds } from '../../../shape/rules/rule-ids.ts';
import { rules } from '../../../shape/rules/rules.ts';
import { hostKey } from '../../fixtures/operator-files.ts';
import { allCases } from '../shape/rules/all-cases.ts';
import { planned } from '../shape/rules/rule-cases.ts';
import { type Analyzer, startAnalyzer } from './analyzer.ts';

const command = 'command:remote:Command';
const image = 'docker:index/remoteImage:RemoteImage';
const connection = { host: '192.0.2.7', user: 'dank', hostKey };
const unknown = '04da6b54-80e4-46f7-96ec-b56ff0331ba9';
const secret = (value: unknown) => ({
  '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270',
  value,
});

let pack: Analyzer;

beforeAll(async () => {
  pack = await startAnalyzer();
});
afterAll(() => pack?.stop());

function cutoverOf(release: Release): object {
  const create = `sudo -n -- ${slotProgram} cutover`;
  const stdin = manifestText(claimOf({ epoch: 1, occupant: undefined }, release), release);
  return { connection, create, update: create, stdin };
}

async function brokenBy(inputs: object, type = command): Promise<readonly string[]> {
  return (await pack.analyze(type, inputs)).map(({ policy }) => policy);
}

it('has a policy for each rule, refusals mandatory and warnings advisory', async () => {
  expect(await pack.policyNames()).toEqual(
    expect.arrayContaining([...ruleIds, ...connectionRules.map(({ id }) => id)]),
  );
});

describe.each(rules)('the policy $id', (rule) => {
  const tables = allCases.flatMap((table) => table[rule.id] ?? []);
  // A policy sees what Pulumi sends, and not what a host was found to have.
  const isSeen = ({ measured }: { measured?: unknown }): boolean => measured === undefined;
  // The functions are those of the rules' own tests, which try every case.
  const fires = tables
    .flatMap((table) => table.fires)
    .filter(isSeen)
    .slice(0, 3);
  const silent = tables
    .flatMap((table) => table.silent)
    .filter(isSeen)
    .slice(0, 3);

  it.each(fires)('fires with $what', async ({ release }) => {
    const found = (await pack.analyze(command, cutoverOf(release))).filter(
      ({ policy }) => policy === rule.id,
    );
    expect(found).toHaveLength(1);
    expect(found[0]?.level).toBe(rule.severity === 'refuse' ? 'mandatory' : 'advisory');
  });

  it.each(silent)('is silent with $what', async ({ release }) => {
    expect(await brokenBy(cutoverOf(release))).not.toContain(rule.id);
  });
});

describe('an exception', () => {
  const excepted = (id: string, release: Release): Release => ({
    ...release,
    review: { ...release.review, exceptions: { [id]: 'it was measured' } },
  });
  const drafted = planned('glm-w4a16', { shape: { engine: { kvCacheDtype: 'fp8' } } });

  it('silences its rule, and is said with its reason', async () => {
    const found = await pack.analyze(command, cutoverOf(excepted('glm-kv-cache-fp8', drafted)));
    expect(found.map(({ policy }) => policy)).not.toContain('glm-kv-cache-fp8');
    expect(found.find(({ policy }) => policy === 'exceptions')?.message).toMatch(
      /glm-kv-cache-fp8[\s\S]*it was measured/,
    );
  });

  it('from a rule that is not broken is said to be idle', async () => {
    const found = await pack.analyze(command, cutoverOf(excepted('expert-prefetch', drafted)));
    expect(found.find(({ policy }) => policy === 'exceptions')?.message).toMatch(
      /expert-prefetch.*take it out/,
    );
  });

  it('from a rule that holds for every shape has no effect', async () => {
    expect(isUnconditional('no-secret-in-unit')).toBe(true);
    const token = `hf_${'aB3'.repeat(10)}`;
    const leaking = planned('glm-w4a16', { shape: { environment: { NOTE: token } } });
    const found = await brokenBy(cutoverOf(excepted('no-secret-in-unit', leaking)));
    expect(found).toEqual(expect.arrayContaining(['no-secret-in-unit', 'exceptions']));
  });
});

describe('inputs that a preview does not know', () => {
  it('are no error, and it is said that nothing was judged', async () => {
    const inputs = { ...cutoverOf(planned('glm-w4a16')), stdin: unknown };
    expect(await pack.analyze(command, inputs)).toMatchObject([
      { policy: 'manifest-known', level: 'advisory' },
    ]);
  });

  it('do not hide what is known', async () => {
    expect(
      await brokenBy({ ...cutoverOf(planned('glm-w4a16')), stdin: unknown, connection: { host: unknown } }),
    ).toEqual(['ssh-host-key', 'manifest-known']);
    expect(await brokenBy({ connection: unknown, create: unknown })).toEqual([]);
  });
});

describe('a manifest that cannot be read', () => {
  const whole = (cutoverOf(planned('glm-w4a16')) as { stdin: string }).stdin;

  it.each([
    ['none', undefined],
    ['an empty one', ''],
    ['no JSON', 'x'],
    ['no manifest', '{}'],
    ['a manifest of another version', '{"version":99}'],
    ['a manifest that is cut', whole.slice(0, -20)],
    ['a key that nobody knows', whole.replace('"claim"', '"claims": 1, "claim"')],
    ['a value of another kind', whole.replace('"port": 7770', '"port": "7770"')],
  ])('refuses: %s', async (_what, stdin) => {
    expect(stdin).not.toBe(whole);
    const found = await pack.analyze(command, { ...cutoverOf(planned('glm-w4a16')), stdin });
    expect(found).toMatchObject([{ policy: 'manifest-readable', level: 'mandatory' }]);
  });

  it('is missed in no other command', async () => {
    for (const create of [`sudo -n ${slotProgram} vacate --service a`, `systemctl stop a-cutover.service`]) {
      expect(await brokenBy({ connection, create, stdin: 'x' })).toEqual([]);
    }
  });
});

describe('a cutover', () => {
  const refused = planned('glm-w4a16', { shape: { engine: { kvCacheDtype: 'fp8' } } });
  const inputs = cutoverOf(refused) as { stdin: string };
  const { stdin } = inputs;

  it.each([
    ['quotes', { create: `sudo '${slotProgram}' 'cutover'` }],
    ['options in between', { create: `${slotProgram} --verbose cutover --follow` }],
    ['a variable for the program', { create: `S=${slotProgram}; exec "$S" cutover` }],
    ['another path', { create: 'slot  cutover' }],
    ['its update alone', { create: 'true', update: `${slotProgram} cutover` }],
    ['a command that nobody knows', { create: 'sh ./run' }],
    ['a command that is not known yet', { create: unknown }],
  ])('is known with %s', async (_what, commands) => {
    expect(await brokenBy({ connection, ...commands, stdin })).toContain('glm-kv-cache-fp8');
  });

  it('is known where it runs on this machine', async () => {
    expect(await brokenBy({ create: 'ssh host slot cutover', stdin }, 'command:local:Command')).toContain(
      'glm-kv-cache-fp8',
    );
  });

  it('without a manifest that can be seen is known by its command', async () => {
    const create = 'ssh host slot cutover < manifest.json';
    expect(await brokenBy({ create }, 'command:local:Command')).toEqual(['manifest-readable']);
  });
});

describe('a secret', () => {
  it('is judged like any other input', async () => {
    const release = planned('glm-w4a16', { shape: { engine: { kvCacheDtype: 'fp8' } } });
    const plain = cutoverOf(release) as Record<string, unknown>;
    const inputs = {
      ...plain,
      stdin: secret(plain.stdin),
      connection: secret({ ...connection, hostKey: '' }),
    };
    expect(await brokenBy(inputs)).toEqual(expect.arrayContaining(['glm-kv-cache-fp8', 'ssh-host-key']));
  });
});

describe('the image of a resource', () => {
  const digest = `sha256:${'a'.repeat(64)}`;

  it('is judged where a container is made of it', async () => {
    const container = 'docker:index/container:Container';
    expect(await brokenBy({ image: 'docker.io/a/b:v1' }, container)).toEqual([
      'image-by-digest',
      'image-without-tag',
    ]);
    expect(await brokenBy({ image: `docker.io/a/b@${digest}` }, container)).toEqual([]);
    expect(await brokenBy({ image: digest }, container)).toEqual([]);
    expect(await brokenBy({ name: 'a-container', image: unknown }, container)).toEqual([]);
  });

  it.each([
    ['a tag alone', 'docker.io/tcclaviger/vllm:v1', ['image-by-digest', 'image-without-tag']],
    ['a tag beside a digest', `docker.io/tcclaviger/vllm:v1@${digest}`, ['image-without-tag']],
    ['no registry', `vllm/vllm-openai@${digest}`, ['image-by-digest']],
    ['a digest', `docker.io/tcclaviger/vllm@${digest}`, []],
    ['a name not known yet', unknown, []],
  ])('is judged with %s', async (_what, name, broken) => {
    expect(await brokenBy({ name }, image)).toEqual(broken);
  });
});

describe('the host key of a connection', () => {
  it.each([
    ['none', { ...connection, hostKey: undefined }],
    ['an empty one', { ...connection, hostKey: '' }],
    ['an RSA key', { ...connection, hostKey: 'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ' }],
    ['a key of another kind than it says', { ...connection, hostKey: hostKey.replace('ed25519', 'ed25518') }],
    ['a key that is cut', { ...connection, hostKey: hostKey.slice(0, -30) }],
    ['two lines', { ...connection, hostKey: `${hostKey}\n${hostKey}` }],
    ['none of the host between', { ...connection, proxy: { host: '192.0.2.1' } }],
  ])('is missed with %s', async (_what, without) => {
    expect(await brokenBy({ connection: without, create: 'true' })).toEqual(['ssh-host-key']);
    for (const type of ['command:remote:CopyToRemote', 'command:remote:CopyFile']) {
      expect(await brokenBy({ connection: without }, type)).toEqual(['ssh-host-key']);
    }
  });

  it.each([
    ['the host', connection],
    ['both hosts', { ...connection, proxy: connection }],
  ])('is enough for %s', async (_what, pinned) => {
    expect(await brokenBy({ connection: pinned, create: 'true' })).toEqual([]);
  });

  it('is not asked of what has no connection', async () => {
    expect(await brokenBy({ create: 'true' }, 'command:local:Command')).toEqual([]);
    expect(await brokenBy({ name: 'x' }, 'aws:s3/bucket:Bucket')).toEqual([]);
  });
});
