import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { findEngine } from '../../../toolchain/engine.ts';
import { prepareToolchain } from '../../../toolchain/prepare.ts';
import { versions } from '../../../toolchain/versions.ts';

let folder: string;
const inFolder = (name: string) => path.join(folder, name);
const cacheFolder = () => inFolder('cache');
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'toolchain-'));
  mkdirSync(inFolder('bin'));
  vi.stubEnv('PATH', inFolder('bin'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

function script(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
}
function pulumiOnPath(version: string): void {
  script(inFolder('bin/pulumi'), `echo v${version}`);
}
function cachedEngine(): string {
  const cached = path.join(cacheFolder(), `pulumi-${versions.pulumi}-host-${versions.languageHost}`);
  for (const name of ['pulumi', 'pulumi-language-nodejs']) script(path.join(cached, name), 'exit 0');
  writeFileSync(path.join(cached, 'origin'), 'built from source');
  return cached;
}

describe('the engine', () => {
  it("is the machine's own where that is new enough and has its language host", async () => {
    pulumiOnPath('3.300.1');
    script(inFolder('bin/pulumi-language-nodejs'), '');
    const parts = await findEngine(cacheFolder(), () => {});
    expect(parts.map(({ from, version }) => ({ from, version }))).toEqual([
      { from: 'machine', version: '3.300.1' },
      { from: 'machine', version: '3.300.1' },
    ]);
  });

  it("is not the machine's own where that is too old or has no language host, and says so", async () => {
    const cached = cachedEngine();
    const told: string[] = [];
    pulumiOnPath('3.100.0');
    expect((await findEngine(cacheFolder(), (line) => told.push(line)))[0]?.took).toBe(
      path.join(cached, 'pulumi'),
    );
    pulumiOnPath('3.300.1');
    expect((await findEngine(cacheFolder(), (line) => told.push(line)))[0]?.took).toBe(
      path.join(cached, 'pulumi'),
    );
    expect(told).toEqual([
      `${inFolder('bin/pulumi')} is 3.100.0, older than ${versions.minimalPulumi}: not taken`,
      `${inFolder('bin/pulumi')} comes without pulumi-language-nodejs: not taken`,
    ]);
  });

  it('that cannot be had in any way is an error that says what was tried and what to install', async () => {
    const failing = findEngine(cacheFolder(), () => {});
    await expect(failing).rejects.toThrow('official download of Pulumi was not to be had');
    await expect(failing).rejects.toThrow('cannot build pulumi-language-nodejs');
    await expect(failing).rejects.toThrow('Install Pulumi (https://www.pulumi.com/docs/install/)');
  });

  it('that does not build is told with the last words of the compiler', async () => {
    script(inFolder('bin/go'), 'echo "go.mod requires go >= 1.99" >&2; exit 1');
    await expect(findEngine(cacheFolder(), () => {})).rejects.toThrow('go.mod requires go >= 1.99');
  });
});

describe('the plugins', () => {
  it('that stand in come before all others on PATH, and nothing is fetched instead of them', async () => {
    cachedEngine();
    const { env, report } = await prepareToolchain({ cacheFolder: cacheFolder(), plugins: 'stand-in' });
    const standIns = report.filter(({ from }) => from === 'stand-in');
    expect(standIns.map(({ part }) => part)).toEqual(['pulumi-resource-command', 'pulumi-resource-docker']);
    const folders = String(env.PATH).split(path.delimiter);
    expect(folders).toContain(path.dirname(String(standIns[0]?.took)));
    expect(folders.at(-1)).toBe(inFolder('bin'));
    expect(env.PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION).toBe('true');
  });

  it('are stood in for where the official ones are refused, but not where those are demanded', async () => {
    const cached = cachedEngine();
    script(path.join(cached, 'pulumi'), 'echo "no such host" >&2; exit 1');
    const { report } = await prepareToolchain({ cacheFolder: cacheFolder(), plugins: 'preferred' });
    expect(report.filter(({ from }) => from === 'stand-in')).toHaveLength(2);
    const demanded = prepareToolchain({ cacheFolder: cacheFolder(), plugins: 'official' });
    await expect(demanded).rejects.toThrow('no such host');
  });

  it('are the official ones where those are installed', async () => {
    cachedEngine();
    for (const [name, version] of Object.entries(versions.plugins)) {
      const plugin = `home/plugins/resource-${name}-v${version}/pulumi-resource-${name}`;
      script(path.join(cacheFolder(), plugin), '');
    }
    const { env, report } = await prepareToolchain({ cacheFolder: cacheFolder(), plugins: 'preferred' });
    expect(report.slice(-2).map(({ from }) => from)).toEqual(['official download', 'official download']);
    expect(env).not.toHaveProperty('PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION');
  });

  it('are not chosen by a word that means nothing', async () => {
    vi.stubEnv('SLOT_PLUGINS', 'oficial');
    const failing = prepareToolchain({ cacheFolder: cacheFolder() });
    await expect(failing).rejects.toThrow(
      'SLOT_PLUGINS is "oficial": expected preferred, official or stand-in',
    );
  });
});
