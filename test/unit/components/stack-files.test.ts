import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { configurationOf, hostNamed } from '../../../components/stack-files.ts';

const hostKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f';
const host = { name: 'dankserver', address: '10.0.0.5', hostKey, service: 'frank-archon', gpus: [] };
const nothing = { host: undefined, shape: undefined, hostsFolder: undefined };
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stack-files-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function write(stack: string, config: object | string): Promise<void> {
  const text = typeof config === 'string' ? config : JSON.stringify({ config });
  return writeFile(join(folder, `Pulumi.${stack}.yaml`), text);
}

describe('the configuration of a stack', () => {
  it('is that of its file', async () => {
    await write('dankserver', { 'slot:host': host });
    expect(configurationOf(folder, 'dankserver', { ...nothing, host })).toMatchObject({
      kind: 'host',
      host,
    });
  });

  it('is what Pulumi hands over where that is of another file', async () => {
    await write('dankserver', { 'slot:host': { ...host, address: undefined } });
    const lab = { ...host, address: '10.77.0.2' };
    expect(configurationOf(folder, 'dankserver', { ...nothing, host: lab })).toMatchObject({
      host: { address: '10.77.0.2' },
    });
  });

  it('needs no file', () => {
    expect(configurationOf(folder, 'dankserver', { ...nothing, host })).toMatchObject({ kind: 'host' });
  });

  it('is refused where readers dispute a word of the file, though Pulumi’s reading of it is valid', async () => {
    await write(
      'dankserver',
      `config:\n  slot:host: ${JSON.stringify({ ...host, port: 1 }).replace('"port":1', '"port":017532')}\n`,
    );
    const octal = { ...host, port: 0o17532 };
    expect(() => configurationOf(folder, 'dankserver', { ...nothing, host: octal })).toThrow(
      /slot:host\.port.*017532/s,
    );
  });

  it('is refused with all that is wrong at once', () => {
    const wrong = { ...nothing, host: { ...host, port: 0, user: '' } };
    expect(() => configurationOf(folder, 'dankserver', wrong)).toThrow(/user[\s\S]*port|port[\s\S]*user/);
  });

  it('is refused for a stack without any', () => {
    expect(() => configurationOf(folder, 'new', nothing)).toThrow(/slot:/);
  });
});

describe('a host named by a shape', () => {
  it('is read from its own stack file', async () => {
    await write('dankserver', { 'slot:host': host });
    expect(hostNamed(folder, 'dankserver')).toMatchObject(host);
  });

  it('is refused where there is no such file, with the folder that was looked in', () => {
    expect(() => hostNamed(folder, 'other')).toThrow(join(folder, 'Pulumi.other.yaml'));
  });

  it('is refused where the file describes a shape', async () => {
    await write('glm', { 'slot:shape': {} });
    expect(() => hostNamed(folder, 'glm')).toThrow();
  });
});
