import { draftedShape } from '../components/planned-shape.ts';
import { ConfigurationError } from '../shape/configuration.ts';
import { releaseIdOf } from '../shape/release.ts';
import { renderEnvironment } from '../shape/render.ts';
import { refusalsIn, reviewOf } from '../shape/review.ts';
import { reviewText } from '../shape/review-text.ts';

/** Prints what the shape becomes on its host and what the rules say of it, from the files alone. */
export async function plan(folder: string, stack: string): Promise<number> {
  const { release, missing } = draftedShape(folder, stack);
  const review = reviewOf(release);
  process.stdout.write(
    [
      `# ${stack}: release ${releaseIdOf(release)}`,
      `# engine identity ${release.engineIdentity}`,
      ...(missing.length === 0 ? [] : ['# drawn with placeholders for what the operator has not supplied']),
      '# review',
      ...(review.violations.length === 0 ? ['no rule is broken'] : []),
      ...reviewText(review),
      `# ${release.service}.service`,
      release.unit,
      '# environment of the engine',
      renderEnvironment(release.environment, release.secrets),
    ].join('\n'),
  );
  if (missing.length > 0) throw new ConfigurationError(missing);
  return refusalsIn(review).length === 0 ? 0 : 1;
}
