import { type PlannedShape, plannedShape } from '../components/planned-shape.ts';
import { stackFile } from '../components/stack-files.ts';
import { ConfigurationError } from '../shape/configuration.ts';
import { releaseIdOf } from '../shape/release.ts';
import { renderEnvironment } from '../shape/render.ts';

/** Prints what the shape becomes on its host, from the files alone. */
export async function plan(folder: string, stack: string): Promise<number> {
  const { release } = plannedOf(folder, stack);
  process.stdout.write(
    [
      `# ${stack}: release ${releaseIdOf(release)}`,
      `# engine identity ${release.engineIdentity}`,
      `# ${release.service}.service`,
      release.unit,
      '# environment of the engine',
      renderEnvironment(release.environment),
    ].join('\n'),
  );
  return 0;
}

/** The shape of a stack file that must describe one. */
export function plannedOf(folder: string, stack: string): PlannedShape {
  const file = stackFile(folder, stack);
  if (file.kind === 'shape') return plannedShape(folder, stack, file);
  throw new ConfigurationError([
    {
      file: `Pulumi.${stack}.yaml`,
      key: 'slot:host',
      value: undefined,
      limit: 'describes a host, but a shape is asked for',
      remedy: 'name the stack of a shape: its file has slot:shape',
    },
  ]);
}
