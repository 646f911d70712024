import { join, resolve } from 'node:path';
import type { StackFile } from '../shape/configuration.ts';
import type { HostConfig } from '../shape/host.ts';
import { planRelease } from '../shape/plan.ts';
import type { Release } from '../shape/release.ts';
import { readTemplates } from '../templates/templates.ts';
import { hostNamed, textOf } from './stack-files.ts';

/** A shape with the machine that serves it. */
export interface PlannedShape {
  readonly host: HostConfig;
  readonly release: Release;
}

/**
 * Renders a shape's release with the host file, the templates and the patches that lie in the project.
 *
 * @throws ConfigurationError with everything that is wrong, at once
 */
export function plannedShape(
  projectFolder: string,
  stack: string,
  file: Extract<StackFile, { kind: 'shape' }>,
): PlannedShape {
  const { shape, hostsFolder = '.' } = file;
  const host = hostNamed(resolve(projectFolder, hostsFolder), shape.host);
  const diffs = shape.patches.flatMap(({ diff }) => {
    const text = textOf(join(projectFolder, 'patches', diff));
    return text === undefined ? [] : [[diff, text] as const];
  });
  const release = planRelease({ host, shape, stack, templates: readTemplates(), patches: new Map(diffs) });
  return { host, release };
}
