import { join } from 'node:path';
import { ConfigurationError } from '../shape/configuration.ts';
import { manifestFromText, type PayloadManifest, payloadsFolder } from '../shape/payload-manifest.ts';
import { allOf } from '../shape/problems.ts';
import { namesIn, textOf } from './project-files.ts';

/**
 * The manifests of a host's payloads, by their files' names. They lie beside the host's file.
 *
 * @throws ConfigurationError with everything that is wrong in the files, at once
 */
export function payloadManifests(hostsFolder: string): ReadonlyMap<string, PayloadManifest> {
  const folder = join(hostsFolder, payloadsFolder);
  const files = namesIn(folder)
    .filter((name) => name.endsWith('.sha256'))
    .map((name) => `${payloadsFolder}/${name}`);
  return new Map(
    allOf(
      ...files.map((file) => () => [file, manifestIn(file, textOf(join(hostsFolder, file)) ?? '')] as const),
    ),
  );
}

function manifestIn(file: string, text: string): PayloadManifest {
  try {
    return manifestFromText(text);
  } catch (error) {
    const limit = `must be a manifest: ${(error as Error).message}`;
    const remedy = 'write it anew: npx slot payload seal <stack>';
    throw new ConfigurationError([{ file, key: '', value: undefined, limit, remedy }]);
  }
}
