import { readFileSync } from 'node:fs';
import * as pulumi from '@pulumi/pulumi';
import type { Wanted } from '../project.ts';

const wanted = JSON.parse(readFileSync('resources.json', 'utf8')) as Wanted;
const made: Record<string, pulumi.Resource> = {};
for (const [name, { type, args, provider }] of Object.entries(wanted.resources)) {
  made[name] = new (await constructorOf(type))(name, withAssets(args), optionsFor(provider));
}
const answers: Record<string, unknown> = {};
for (const [name, { type, args, provider }] of Object.entries(wanted.calls ?? {})) {
  answers[name] = await (await functionOf(type))(args, optionsFor(provider));
}
export const calls = answers;

type Constructor = new (name: string, args: never, options: pulumi.InvokeOptions) => pulumi.CustomResource;

// A package is loaded when it is used: the suite runs this program many times.
async function constructorOf(type: Wanted['resources'][string]['type']): Promise<Constructor> {
  if (type === 'docker.Provider') return (await import('@pulumi/docker')).Provider as Constructor;
  if (type === 'docker.RemoteImage') return (await import('@pulumi/docker')).RemoteImage as Constructor;
  const { local, remote } = await import('@pulumi/command');
  if (type === 'local.Command') return local.Command;
  return type === 'remote.Command' ? remote.Command : remote.CopyToRemote;
}

async function functionOf(type: NonNullable<Wanted['calls']>[string]['type']) {
  const run =
    type === 'local.run'
      ? (await import('@pulumi/command')).local.run
      : (await import('@pulumi/docker')).getRegistryImage;
  return run as (args: object, options: pulumi.InvokeOptions) => Promise<unknown>;
}

function optionsFor(provider: string | undefined): pulumi.InvokeOptions {
  return provider === undefined ? {} : { provider: made[provider] as pulumi.ProviderResource };
}

function withAssets(args: Record<string, unknown>): never {
  const source = args.source as { file?: string; text?: string; folder?: string } | undefined;
  if (source?.file !== undefined)
    return { ...args, source: new pulumi.asset.FileAsset(source.file) } as never;
  if (source?.text !== undefined)
    return { ...args, source: new pulumi.asset.StringAsset(source.text) } as never;
  if (source?.folder !== undefined)
    return { ...args, source: new pulumi.asset.FileArchive(source.folder) } as never;
  return args as never;
}
