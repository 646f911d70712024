import * as z from 'zod';
import { nearest } from '../schema-keys.ts';
import { nameSchema, nonEmptyLineSchema } from '../text.ts';
import { type Flag, flagAbbreviatedBy, flagNamed, occurrencesIn, takesSchema } from './command-line.ts';

const flagNameSchema = z.string().regex(/^--?[A-Za-z][\w.-]*$/, 'must be a flag with its dashes');

const flagSchema = z.strictObject({
  aliases: z
    .array(flagNameSchema)
    .optional()
    .describe('Other spellings, its negation among them; without it there are none.'),
  takes: takesSchema.describe(
    'What follows it: `nothing`, one `value`, an `optional` one, a `list` of values, or `json`.',
  ),
  choices: z.array(z.string()).min(1).optional().describe('The only values it takes; without it any.'),
});

/** What is known of the command line of one image, whoever serves what with it. */
const commandLineKnowledge = {
  complete: z
    .boolean()
    .describe('Whether the image has no flag and no parser but these. Only the image itself can say so.'),
  flags: z.record(flagNameSchema, flagSchema).describe('Flags that the image takes, by name.'),
  toolParsers: z.array(nonEmptyLineSchema).describe('Values that `--tool-call-parser` can have.'),
  reasoningParsers: z.array(nonEmptyLineSchema).describe('Values that `--reasoning-parser` can have.'),
};

const rcclFixedSchema = z
  .boolean()
  .optional()
  .describe('Whether its RCCL is known not to hang on gfx1201; without it it is not known.');

const engineKindSchema = z.enum(['vllm', 'r9v']);
const entrypointSchema = z.array(nonEmptyLineSchema);

/** A day or a month that the calendar has. */
function isDayOrMonth(text: string): boolean {
  if (!/^\d{4}-\d{2}(?:-\d{2})?$/.test(text)) return false;
  const day = new Date(text);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

/** `images/<name>.yaml`: what is known of an image, kept as data. */
export const imageKnowledgeSchema = z.strictObject({
  digest: z
    .string()
    .regex(
      /^sha256:[0-9a-f]{4,64}$/,
      'must be sha256: and up to 64 lower-case hexadecimal digits, as many as are known',
    )
    .describe('Of the image, whole; or its beginning, where no more is on record.'),
  engine: engineKindSchema.describe('Kind of the engine in it.'),
  version: nonEmptyLineSchema
    .optional()
    .describe('As the engine says it of itself; without it it is not known.'),
  source: nonEmptyLineSchema.describe('Who says so.'),
  taken: z
    .string()
    .refine(isDayOrMonth, 'must be a day, as 2026-11-29, or a month')
    .describe('When, as 2026-11-29; a month where no more is on record.'),
  entrypoint: entrypointSchema
    .optional()
    .describe("The image's own, empty for none; without it it is not known."),
  rcclFixed: rcclFixedSchema,
  ...commandLineKnowledge,
});
export type ImageKnowledge = z.infer<typeof imageKnowledgeSchema>;

/** What an image tells of itself when it is asked. */
export const imageDescriptionSchema = imageKnowledgeSchema
  .pick({ toolParsers: true, reasoningParsers: true })
  .extend({
    version: nonEmptyLineSchema,
    entrypoint: z.array(z.string()),
    // There is no engine without a flag: a parser that tells none was asked in vain.
    flags: commandLineKnowledge.flags.refine(
      (flags) => Object.keys(flags).length > 0,
      'must hold a flag at least',
    ),
  });
export type ImageDescription = z.infer<typeof imageDescriptionSchema>;

/** What a release carries of it: all that bears on its own arguments, so that it can be judged by itself. */
export const imageFactsSchema = z.strictObject({
  /** Of the file in `images/`, without its ending. */
  name: nameSchema,
  /** Absent in releases of before it was looked at. */
  engine: engineKindSchema.optional(),
  /** The image's own, empty for none; absent: not known. */
  entrypoint: entrypointSchema.optional(),
  rcclFixed: rcclFixedSchema,
  ...commandLineKnowledge,
});
export type ImageFacts = z.infer<typeof imageFactsSchema>;

/** Whether an image begins as it must; its program may be named by its path. */
export function beginsAs(entrypoint: readonly string[], wanted: readonly string[]): boolean {
  const [program = '', ...words] = entrypoint;
  const spellings = [entrypoint, [program.split('/').at(-1) ?? program, ...words]];
  return spellings.some((spelling) => JSON.stringify(spelling) === JSON.stringify(wanted));
}

/** A file of `images/` that speaks of an image. */
export interface NamedImageKnowledge {
  readonly name: string;
  readonly knowledge: ImageKnowledge;
}

/** What is known of the image with this digest: the file that names most of it counts. */
export function knowledgeOf(
  all: readonly NamedImageKnowledge[],
  digest: string,
): NamedImageKnowledge | undefined {
  return all
    .filter(({ knowledge }) => digest.startsWith(knowledge.digest))
    .sort((a, b) => b.knowledge.digest.length - a.knowledge.digest.length)[0];
}

/**
 * The part of an image's knowledge that bears on these arguments: flags that are there, that one of them is the
 * beginning of, and the nearest to one that is not known; parsers likewise.
 */
export function imageFacts({ name, knowledge }: NamedImageKnowledge, words: readonly string[]): ImageFacts {
  const flags = flagsIn(knowledge);
  const occurrences = occurrencesIn(words);
  const bearing = bearingFlags(
    flags,
    occurrences.map(({ name: written }) => written),
  );
  const parsers = (known: readonly string[], flag: string): string[] => {
    const used = occurrences.find(({ name: written }) => written === flag)?.values[0];
    return known.filter(
      (parser) => parser === used || (used !== undefined && parser === nearest(used, known)),
    );
  };
  return {
    name,
    engine: knowledge.engine,
    ...(knowledge.entrypoint && { entrypoint: knowledge.entrypoint }),
    ...(knowledge.rcclFixed !== undefined && { rcclFixed: knowledge.rcclFixed }),
    complete: knowledge.complete,
    flags: Object.fromEntries(
      bearing.flatMap((flag) => {
        const told = knowledge.flags[flag.name];
        return told === undefined ? [] : [[flag.name, told]];
      }),
    ),
    toolParsers: parsers(knowledge.toolParsers, '--tool-call-parser'),
    reasoningParsers: parsers(knowledge.reasoningParsers, '--reasoning-parser'),
  };
}

/** Nobody reads more suggestions; each is a comparison with every flag. */
const mostSuggestions = 20;

function bearingFlags(flags: readonly Flag[], written: readonly string[]): readonly Flag[] {
  const known = new Set(written.map((name) => flagNamed(flags, name)));
  const unknown = [...new Set(written.filter((name) => flagNamed(flags, name) === undefined))];
  const beginnings = new Set(unknown.filter((name) => flagAbbreviatedBy(flags, name) !== undefined));
  const meant = new Set(
    unknown
      .filter((name) => !beginnings.has(name))
      .slice(0, mostSuggestions)
      .map((name) => nearest(name, spellingsOf(flags))),
  );
  return flags.filter(
    (flag) =>
      known.has(flag) ||
      meant.has(flag.name) ||
      [flag.name, ...flag.aliases].some((spelling) =>
        [...beginnings].some((name) => spelling.startsWith(name)),
      ),
  );
}

const lists = new WeakMap<object, readonly Flag[]>();

/** The flags that are known of an image; the same list for the same image. */
export function flagsIn({ flags }: Pick<ImageFacts, 'flags'>): readonly Flag[] {
  const list = lists.get(flags) ?? flagListOf(flags);
  lists.set(flags, list);
  return list;
}

function flagListOf(flags: ImageFacts['flags']): readonly Flag[] {
  return Object.entries(flags).map(([name, { aliases = [], takes, choices }]) => ({
    name,
    aliases,
    takes,
    choices,
  }));
}

function spellingsOf(flags: readonly Flag[]): readonly string[] {
  return flags.map((flag) => flag.name);
}
