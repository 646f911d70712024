import { join } from 'node:path';
import { ConfigurationError, loadImageKnowledge } from '../shape/configuration.ts';
import type { NamedImageKnowledge } from '../shape/engines/image-knowledge.ts';
import { allOf } from '../shape/problems.ts';
import { namesIn, textOf } from './project-files.ts';

/** Folder of what is known of images, a file each. */
export const imagesFolder = 'images';

/** Read once a folder: a catalogue of shapes shares a few images, whose flags take 10 ms to validate. */
const read = new Map<string, readonly NamedImageKnowledge[]>();

/**
 * All that the project knows of images.
 *
 * @throws ConfigurationError with everything that is wrong in their files, at once
 */
export function imageFiles(projectFolder: string): readonly NamedImageKnowledge[] {
  const folder = join(projectFolder, imagesFolder);
  const known = read.get(folder) ?? readImageFiles(folder);
  read.set(folder, known);
  return known;
}

/** The files of this folder as they are now. */
export function readImageFiles(folder: string): readonly NamedImageKnowledge[] {
  const names = namesIn(folder)
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => file.slice(0, -'.yaml'.length));
  const all = allOf(
    ...names.map((name) => (): NamedImageKnowledge => {
      const file = `${imagesFolder}/${name}.yaml`;
      return { name, knowledge: loadImageKnowledge(file, textOf(join(folder, `${name}.yaml`)) ?? '') };
    }),
  );
  for (const [index, { name, knowledge }] of all.entries()) {
    const other = all.slice(0, index).find((one) => one.knowledge.digest === knowledge.digest);
    if (other === undefined) continue;
    throw new ConfigurationError([
      {
        file: `${imagesFolder}/${name}.yaml`,
        key: 'digest',
        value: knowledge.digest,
        limit: `must not be that of ${imagesFolder}/${other.name}.yaml`,
        remedy: 'keep one of the two files',
      },
    ]);
  }
  return all;
}
