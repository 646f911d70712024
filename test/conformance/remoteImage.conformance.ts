import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DockerDouble } from './dockerDouble.ts';
import type { Wanted } from './project.ts';
import { useProjectAndSshd } from './setup.ts';

const used = useProjectAndSshd();
const digest = `sha256:${'1'.repeat(64)}`;
const other = `sha256:${'2'.repeat(64)}`;
const missing = `sha256:${'3'.repeat(64)}`;
const image = (of: string) => ({
  Id: `sha256:${of.slice(7, 8).repeat(63)}f`,
  RepoDigests: [`registry.test/engine@${of}`],
});

const double = () => path.join(used.project.folder, 'docker.json');
const read = () => JSON.parse(readFileSync(double(), 'utf8')) as DockerDouble;
const write = (content: DockerDouble) => writeFileSync(double(), JSON.stringify(content));
const present = () => read().images.flatMap(({ RepoDigests }) => RepoDigests);
const requests = () => readFileSync(`${double()}.log`, 'utf8').trim().split('\n');
const pulls = () => requests().filter((request) => request.includes('/images/create'));

function host(): Wanted['resources'][string] {
  const { port, user } = used.sshd.connection;
  const options = ['-F', 'none', '-o', 'BatchMode=yes', '-o', 'StrictHostKeyChecking=no'];
  const args = {
    host: `ssh://${user}@127.0.0.1:${port}`,
    sshOpts: [
      ...options,
      '-o',
      'UserKnownHostsFile=/dev/null',
      '-o',
      'LogLevel=ERROR',
      '-i',
      used.sshd.keyFile,
    ],
  };
  return { type: 'docker.Provider', args };
}
const wanting = (args: Record<string, unknown>): Wanted => ({
  resources: { host: host(), engine: { type: 'docker.RemoteImage', args, provider: 'host' } },
});

beforeAll(() => {
  const script = path.join(used.sshd.bin, 'docker');
  const program = path.join(import.meta.dirname, 'dockerDouble.ts');
  writeFileSync(script, `#!/bin/sh\nexec ${process.execPath} ${program} ${double()} "$@"\n`, { mode: 0o755 });
  write({ images: [], registry: [image(digest), image(other)] });
});

describe('an image named by its digest', () => {
  const wanted = () => wanting({ name: `registry.test/engine@${digest}`, keepLocally: true });

  it('is pulled by its digest where the host has none', async () => {
    const outcome = await used.project.up(wanted());
    expect(outcome.text).toContain('3 created');
    expect(present()).toEqual([`registry.test/engine@${digest}`]);
    expect(pulls()).toEqual([expect.stringContaining(`tag=${encodeURIComponent(digest)}`)]);
    expect(used.project.outputsOf('engine')).toMatchObject({
      imageId: image(digest).Id,
      repoDigest: `registry.test/engine@${digest}`,
    });
  });

  it('is not missed by a plain up, but by a refresh; the up after it pulls again', async () => {
    write({ ...read(), images: [] });
    expect((await used.project.up(wanted())).text).toContain('3 unchanged');
    expect(present()).toEqual([]);
    await used.project.refresh();
    expect(used.project.outputsOf('engine')).toBeUndefined();
    await used.project.up(wanted());
    expect(pulls()).toHaveLength(2);
  });

  it('under another digest is a replacement, which with keepLocally leaves the old image', async () => {
    const outcome = await used.project.up(
      wanting({ name: `registry.test/engine@${other}`, keepLocally: true }),
    );
    expect(outcome.operations.engine).toMatch(/replace/);
    expect(present()).toEqual([`registry.test/engine@${digest}`, `registry.test/engine@${other}`]);
  });

  it('that is there already is not pulled', async () => {
    const before = pulls().length;
    await used.project.up(wanted());
    expect(pulls()).toHaveLength(before);
  });

  it('is removed by a destroy without keepLocally, which is the default', async () => {
    const outcome = await used.project.up(wanting({ name: `registry.test/engine@${digest}` }));
    expect(outcome.operations.engine).toBe('update');
    expect((await used.project.destroy()).failed).toBe(false);
    expect(present()).toEqual([`registry.test/engine@${other}`]);
  });
});

describe('failures', () => {
  it('a digest that the registry does not have fails at up, not at preview, and leaves no state', async () => {
    const wanted = wanting({ name: `registry.test/engine@${missing}`, keepLocally: true });
    expect((await used.project.preview(wanted)).failed).toBe(false);
    const outcome = await used.project.up(wanted);
    expect(outcome.failed).toBe(true);
    expect(outcome.text).toMatch(/unable to (find or )?pull image registry\.test\/engine@sha256:3/);
    expect(used.project.outputsOf('engine')).toBeUndefined();
  });

  it('a host without a working docker fails the up, and a destroy even with keepLocally', async () => {
    const wanted = wanting({ name: `registry.test/engine@${other}`, keepLocally: true });
    await used.project.up(wanted);
    writeFileSync(`${double()}.down`, '');
    expect((await used.project.destroy()).text).toContain('Error pinging Docker server');
    rmSync(`${double()}.down`);
    expect((await used.project.destroy()).failed).toBe(false);
  });
});

describe('the digest that a registry has for a name', () => {
  let registry: http.Server;
  let address: string;
  const asking = (name: string): Wanted => {
    const provider = host();
    provider.args.registryAuth = [{ address: `http://${address}`, authDisabled: true }];
    const call = {
      type: 'docker.getRegistryImage',
      args: { name: `${address}/${name}` },
      provider: 'host',
    } as const;
    return { resources: { host: provider }, calls: { asked: call } };
  };
  beforeAll(async () => {
    registry = http.createServer((request, response) => {
      const known = ['/v2/engine/manifests/v1', `/v2/engine/manifests/${digest}`].includes(request.url ?? '');
      response.writeHead(known ? 200 : 404, { 'Docker-Content-Digest': digest }).end();
    });
    await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve));
    address = `127.0.0.1:${(registry.address() as AddressInfo).port}`;
  });
  afterAll(() => registry.close());

  it('is found at preview, by tag and by tag and digest, in plain http where registryAuth says so', async () => {
    const wanted = asking('engine:v1');
    const calls = { ...asking(`engine:v1@${digest}`).calls };
    Object.assign(wanted.calls as object, { pinned: calls.asked });
    const outcome = await used.project.preview(wanted);
    expect(outcome.failed).toBe(false);
    expect(outcome.text.match(new RegExp(`sha256Digest *: "${digest}"`, 'g'))).toHaveLength(2);
  });

  it('is missed at preview already', async () => {
    const outcome = await used.project.preview(asking(`engine:v1@${missing}`));
    expect(outcome.failed).toBe(true);
    expect(outcome.text).toContain('Got error when attempting to fetch image version');
  });

  it('is not found for a digest without a tag', async () => {
    expect((await used.project.preview(asking(`engine@${digest}`))).failed).toBe(true);
  });
});
