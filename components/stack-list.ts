import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Names of the stacks whose files in this folder describe a machine, or what one serves, in alphabetical order. */
export function stacksIn(folder: string, kind: 'host' | 'shape'): readonly string[] {
  if (!existsSync(folder)) return [];
  const described = new RegExp(`^\\s*["']?slot:${kind}["']?\\s*:`, 'm');
  return readdirSync(folder)
    .flatMap((file) => /^Pulumi\.(.+)\.yaml$/.exec(file)?.[1] ?? [])
    .filter((stack) => described.test(readFileSync(join(folder, `Pulumi.${stack}.yaml`), 'utf8')))
    .sort();
}
