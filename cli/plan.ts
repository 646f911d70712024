import { draftedShape } from '../components/planned-shape.ts';
import { stacksIn } from '../components/stack-list.ts';
import { ConfigurationError } from '../shape/configuration.ts';
import { memoryPlanOf } from '../shape/memory/plan.ts';
import { memoryTable } from '../shape/memory/table.ts';
import { type Release, releaseIdOf } from '../shape/release.ts';
import { renderEnvironment } from '../shape/render.ts';
import { mayBeShown, refusalsIn, reviewOf, unitNotShown } from '../shape/review.ts';
import { reviewText } from '../shape/review-text.ts';
import { UsageError } from './usage.ts';

/** What a shape becomes. */
export interface Plan {
  readonly text: string;
  /** Missing or wrong values; empty where a rule alone refuses it. */
  readonly complaints: string;
  /** A value is wrong, or a rule refuses; one that is only missing refuses nothing yet. */
  readonly isRefused: boolean;
}

/**
 * Prints what shapes become on their hosts and what the rules say of them, from the files alone.
 *
 * @param stacks default: all shapes of the folder
 * @returns the exit code: 1 where a value is wrong or a rule refuses
 */
export async function plan(folder: string, stacks: readonly string[]): Promise<number> {
  const wanted = stacks.length === 0 ? stacksIn(folder, 'shape') : stacks;
  if (wanted.length === 0)
    throw new UsageError(`${folder}: no file Pulumi.<stack>.yaml there has slot:shape`);
  let exitCode = 0;
  for (const stack of wanted) {
    const { text, complaints, isRefused } = planOf(folder, stack);
    process.stdout.write(text);
    process.stderr.write(complaints);
    if (isRefused) exitCode = 1;
  }
  return exitCode;
}

export function planOf(folder: string, stack: string): Plan {
  try {
    const { release, missing } = draftedShape(folder, stack);
    const review = reviewOf(release);
    const lines = [
      `# ${stack}: release ${releaseIdOf(release)}`,
      `# engine identity ${release.engineIdentity}`,
      ...(missing.length === 0 ? [] : ['# drawn with placeholders for what the operator has not supplied']),
      '',
      '# rules',
      ...(review.violations.length === 0 ? ['none is broken'] : []),
      ...reviewText(review),
      '',
      '# memory plan',
      ...memoryTable(memoryPlanOf(release)),
      '',
      ...(mayBeShown(review) ? unitLines(release) : [unitNotShown, '']),
    ];
    return {
      text: lines.join('\n'),
      complaints: missing.length === 0 ? '' : `${new ConfigurationError(missing).message}\n`,
      isRefused: refusalsIn(review).length > 0,
    };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return { text: '', complaints: `${error.message}\n`, isRefused: true };
  }
}

function unitLines(release: Release): readonly string[] {
  return [
    `# ${release.service}.service`,
    release.unit,
    '# environment of the engine',
    renderEnvironment(release.environment, release.secrets),
  ];
}
