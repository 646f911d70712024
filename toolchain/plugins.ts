import path from 'node:path';
import { execa } from 'execa';
import { askAtMostDaily, exists, Refused } from './cache.ts';
import { reasonOf } from './engine.ts';
import type { Part, Progress } from './part.ts';
import { versions } from './versions.ts';

/**
 * Which plugins to take: `preferred` means the official one and a stand-in only where it is not to be had;
 * `official` fails where it is not to be had; `stand-in` is for holding the stand-ins themselves to the official behaviour.
 */
export type PluginChoice = 'preferred' | 'official' | 'stand-in';

const standIns = path.join(import.meta.dirname, '..', 'test', 'plugins');
const installLimitMs = 180_000;

export async function findPlugin(
  name: keyof typeof versions.plugins,
  choice: PluginChoice,
  pulumi: string,
  environment: Record<string, string>,
  progress: Progress,
): Promise<Part> {
  const version = versions.plugins[name];
  const part = `pulumi-resource-${name}` as const;
  const standIn: Part = { part, version, took: path.join(standIns, part), from: 'stand-in' };
  if (choice === 'stand-in') return standIn;
  const home = String(environment.PULUMI_HOME);
  const official = path.join(home, 'plugins', `resource-${name}-v${version}`, part);
  if (await exists(official)) return { part, version, took: official, from: 'official download' };
  try {
    await askAtMostDaily(path.join(home, `refused-${part}-${version}`), async () => {
      progress(`downloading the official plugin ${name} ${version}`);
      await execa(pulumi, ['plugin', 'install', 'resource', name, version], {
        env: environment,
        timeout: installLimitMs,
        forceKillAfterDelay: 1000,
      }).catch((error: unknown) => {
        throw new Refused(`the official plugin ${name} ${version} was not to be had: ${reasonOf(error)}`);
      });
    });
    return { part, version, took: official, from: 'official download' };
  } catch (error) {
    if (!(error instanceof Refused) || choice === 'official') throw error;
    progress(`${error.message}\n  so its stand-in is used: ${standIn.took}`);
    return standIn;
  }
}
