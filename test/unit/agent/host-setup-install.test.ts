import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { sha256 } from '../../../shape/release.ts';

const script = readFileSync(new URL('../../../components/host-scripts/install.sh', import.meta.url), 'utf8');

/** Stands for Node: prints a version, and for `host-setup` what it was given. */
const fakeNode = `#!/bin/sh
case $2 in
  --version) sed -n 's/^version //p' "$1"; ! grep -q broken "$1" ;;
  host-setup) cat ;;
esac
`;

let folder: string;
let staging: string;
beforeEach(() => {
  const base = mkdtempSync(join(tmpdir(), 'slot-install-'));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  folder = join(base, 'libexec');
  staging = join(base, 'staging');
  mkdirSync(folder);
});

/** Copies both files to the staging folder, as Pulumi would, and runs the script as `sh -s` gets it over ssh. */
async function install(agent: string, content: string, arrives: { agent: string; node: string } | undefined) {
  if (arrives !== undefined) {
    mkdirSync(staging, { recursive: true });
    writeFileSync(join(staging, agent), arrives.agent);
    writeFileSync(join(staging, 'node-1'), arrives.node);
  }
  const assignments = [
    'host=dankserver',
    `slot_program=${folder}/slot`,
    `agent=${agent}`,
    `agent_sha256=${sha256(content)}`,
    'node=node-1',
    `node_sha256=${sha256(fakeNode)}`,
    `setup='{"service":"frank-archon"}'`,
  ];
  return execa('sh', ['-s', staging], { input: `${assignments.join('\n')}\n${script}`, reject: false });
}

function installed(): string[] {
  return readdirSync(folder).sort();
}

async function installVersion(version: string) {
  const content = `version ${version}\n`;
  return install(`agent-${version}`, content, { agent: content, node: fakeNode });
}

describe.runIf(process.platform === 'linux')('installing the host program', () => {
  it('hands the host’s values to host-setup and says the version', async () => {
    const { stdout, exitCode } = await installVersion('one');
    expect(exitCode).toBe(0);
    expect(stdout).toBe('{"service":"frank-archon"}agent=one');
    expect(installed()).toEqual(['agent-one', 'node-1', 'slot']);
  });

  it('leaves no copy behind', async () => {
    await installVersion('one');
    expect(() => readdirSync(staging)).toThrow('ENOENT');
  });

  it('does not install a copy that was damaged on the way', async () => {
    await installVersion('one');
    const { exitCode, stderr } = await install('agent-two', 'version two\n', {
      agent: 'version tw',
      node: fakeNode,
    });
    expect(exitCode).toBe(1);
    expect(stderr).toContain('damaged');
    expect(installed()).toEqual(['agent-one', 'node-1', 'slot']);
    expect(readFileSync(join(folder, 'slot'), 'utf8')).toContain('agent-one');
  });

  it('repairs an installed file that was damaged', async () => {
    await installVersion('one');
    writeFileSync(join(folder, 'node-1'), 'torn');
    expect((await installVersion('one')).exitCode).toBe(0);
    expect(readFileSync(join(folder, 'node-1'), 'utf8')).toBe(fakeNode);
  });

  it('needs no copy of what is installed already', async () => {
    await installVersion('one');
    expect((await install('agent-one', 'version one\n', undefined)).exitCode).toBe(0);
  });

  it('names what is missing when there is neither an installed file nor a copy', async () => {
    const { exitCode, stderr } = await install('agent-one', 'version one\n', undefined);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`dankserver: ${folder}/node-1 is missing or damaged`);
  });

  it('does not switch to a version that does not run', async () => {
    await installVersion('one');
    const broken = 'version two broken\n';
    const { exitCode, stderr } = await install('agent-two', broken, { agent: broken, node: fakeNode });
    expect(exitCode).toBe(1);
    expect(stderr).toContain('the old one stays');
    expect(readFileSync(join(folder, 'slot'), 'utf8')).toContain('agent-one');
  });

  it('keeps the two versions before the current one, for transactions that still use them', async () => {
    for (const [age, version] of ['one', 'two', 'three', 'four'].entries()) {
      await installVersion(version);
      utimesSync(join(folder, `agent-${version}`), 1000 + age, 1000 + age);
    }
    await installVersion('five');
    expect(installed()).toEqual(['agent-five', 'agent-four', 'agent-three', 'node-1', 'slot']);
  });

  it('keeps an old version that is installed again', async () => {
    for (const [age, version] of ['one', 'two', 'three'].entries()) {
      await installVersion(version);
      utimesSync(join(folder, `agent-${version}`), 1000 + age, 1000 + age);
    }
    await installVersion('one');
    await installVersion('four');
    expect(installed()).toEqual(['agent-four', 'agent-one', 'agent-three', 'node-1', 'slot']);
  });

  it('does nothing when only a part of the script arrives', async () => {
    const part = script.slice(0, script.indexOf('remove_old\n  rm -f'));
    const { exitCode } = await execa('sh', ['-s', staging], { input: part, reject: false });
    expect(exitCode).not.toBe(0);
    expect(installed()).toEqual([]);
  });
});
