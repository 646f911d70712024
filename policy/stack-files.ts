import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { draftedShape } from '../components/planned-shape.ts';
import { draftedStackFile, experimentsFolder } from '../components/stack-files.ts';
import { stackNamesIn } from '../components/stack-list.ts';
import { refusalsIn, reviewOf } from '../shape/review.ts';
import { reviewText, verdictText } from '../shape/review-text.ts';
import { connectionRules } from '../shape/rules/connection.ts';

/** What the rules say of one stack file. */
export interface FileVerdict {
  readonly stack: string;
  readonly isExperiment: boolean;
  /** In a line. */
  readonly verdict: string;
  /** What a reviewer must know of it, a few lines each. */
  readonly details: readonly string[];
  /** Whether the file is as it must be: a shape passes, an experiment on record does not. */
  readonly isGood: boolean;
}

/** Judges every stack file of the project, its experiments included, from the files alone. */
export function judgedStackFiles(folder: string): readonly FileVerdict[] {
  return [
    ...stackNamesIn(folder).map((stack) => judged(folder, stack, false)),
    ...stackNamesIn(join(folder, experimentsFolder)).map((stack) => judged(folder, stack, true)),
  ];
}

function judged(folder: string, stack: string, isExperiment: boolean): FileVerdict {
  try {
    const { file, missing } = draftedStackFile(folder, stack);
    if (file.kind === 'host') {
      const { address, hostKey, jumpHost } = file.host;
      const ends = [{ address, hostKey }, ...(jumpHost ? [jumpHost] : [])];
      const found = ends.flatMap((end) =>
        connectionRules.flatMap((rule) => rule.examine({ host: end.address, hostKey: end.hostKey }) ?? []),
      );
      const verdict = `host${supplied(missing.length)}`;
      return { stack, isExperiment, verdict, details: found, isGood: found.length === 0 };
    }
    const { release, missing: missingOfBoth } = draftedShape(folder, stack);
    const review = reviewOf(release);
    return {
      stack,
      isExperiment,
      verdict: `${verdictText(review)}${supplied(missingOfBoth.length)}`,
      details: reviewText(review),
      // An arm on record is there to be refused with its reason.
      isGood: isExperiment || refusalsIn(review).length === 0,
    };
  } catch (error) {
    if ((error as Error).name !== 'ConfigurationError') throw error;
    return { stack, isExperiment, verdict: 'not valid', details: [(error as Error).message], isGood: false };
  }
}

/** What is said of several stacks is said once. */
function stacksByDetail(verdicts: readonly FileVerdict[]): ReadonlyMap<string, readonly string[]> {
  const said = verdicts.flatMap(({ stack, details }) => details.map((text) => ({ stack, text })));
  const grouped = Map.groupBy(said, ({ text }) => text);
  return new Map([...grouped].map(([text, each]) => [text, each.map(({ stack }) => stack)]));
}

function supplied(missing: number): string {
  return missing === 0 ? '' : `; drawn with placeholders for ${missing} values that the operator supplies`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const folder = process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url));
  const verdicts = judgedStackFiles(folder);
  const width = Math.max(0, ...verdicts.map(({ stack }) => stack.length));
  const mark = ({ isGood, isExperiment }: FileVerdict): string =>
    isGood ? (isExperiment ? 'experiment' : 'passes') : 'FAILS';
  process.stdout.write(
    [
      ...verdicts.map((each) => `${mark(each).padEnd(11)} ${each.stack.padEnd(width)}  ${each.verdict}`),
      ...[...stacksByDetail(verdicts)].map(
        ([text, stacks]) => `\n${stacks.join(', ')}\n${text.replaceAll(/^/gm, '  ')}`,
      ),
      ...(verdicts.length === 0 ? [`no stack file in ${folder}`] : []),
      '',
    ].join('\n'),
  );
  process.exitCode = verdicts.length > 0 && verdicts.every(({ isGood }) => isGood) ? 0 : 1;
}
