import { join } from 'node:path';
import { ConfigurationError } from '../shape/configuration.ts';
import { namesIn, textOf } from './project-files.ts';

/**
 * Names of the stacks whose files in this folder describe a machine, or what one serves, in alphabetical order. A
 * file that cannot be read counts as one of a shape: who reads it says why.
 */
export function stacksIn(folder: string, kind: 'host' | 'shape'): readonly string[] {
  const described = new RegExp(`^\\s*["']?slot:${kind}["']?\\s*:`, 'm');
  return stackNamesIn(folder).filter((stack) => {
    try {
      return described.test(textOf(join(folder, `Pulumi.${stack}.yaml`)) ?? '');
    } catch (error) {
      if (error instanceof ConfigurationError) return kind === 'shape';
      throw error;
    }
  });
}

/** Names of all stacks with a file in this folder, whatever is in it, in alphabetical order. */
export function stackNamesIn(folder: string): readonly string[] {
  return namesIn(folder)
    .flatMap((file) => /^Pulumi\.(.+)\.yaml$/.exec(file)?.[1] ?? [])
    .sort();
}
