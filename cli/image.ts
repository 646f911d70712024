import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { imagesFolder, readImageFiles } from '../components/image-files.ts';
import { plannedShape } from '../components/planned-shape.ts';
import { replaceText } from '../components/project-files.ts';
import { loadImageKnowledge } from '../shape/configuration.ts';
import {
  type ImageDescription,
  type ImageKnowledge,
  imageDescriptionSchema,
  type NamedImageKnowledge,
} from '../shape/engines/image-knowledge.ts';
import { jsonOrUndefined } from '../shape/json.ts';
import type { Release } from '../shape/release.ts';
import { askHost, longSeconds } from './host-program.ts';

/**
 * Has a shape's host ask the pinned image for its flags and parsers, in a throw-away container while what serves
 * goes on, and writes the answer to `images/`. An image that cannot tell changes nothing.
 */
export async function learn(folder: string, stack: string): Promise<number> {
  const { host, release } = plannedShape(folder, stack);
  const { image, engineKind } = release;
  process.stderr.write(`${host.name}: asking ${image} for its flags, which can take minutes\n`);
  const input = JSON.stringify({ image, engineKind });
  const answer = await askHost(host, ['describe-image'], { input, timeoutSeconds: longSeconds });
  if (answer.exitCode !== 0) {
    process.stderr.write('nothing was written\n');
    return answer.exitCode;
  }
  const told = imageDescriptionSchema.safeParse(jsonOrUndefined(answer.stdout));
  if (!told.success) {
    const [issue] = told.error.issues;
    process.stderr.write(
      `${host.name} answered in another form (${issue?.path.join('.') || 'all of it'}: ${issue?.message}), so nothing ` +
        `was written; is its slot of this version? pulumi up -s ${host.name} installs it\n`,
    );
    return 1;
  }
  const day = new Date().toISOString().slice(0, 10);
  const before = filesAbout(image, readImageFiles(join(folder, imagesFolder)));
  const knowledge = { ...keptOf(before), ...knowledgeFrom(told.data, release, day) };
  const [own] = before.filter(({ knowledge: known }) => image.endsWith(`@${known.digest}`));
  process.stdout.write(`${write(folder, own?.name ?? imageFileName(image), knowledge)}\n`);
  return 0;
}

/** All that speak of an image, the one that names most of its digest first. */
function filesAbout(image: string, all: readonly NamedImageKnowledge[]): readonly NamedImageKnowledge[] {
  const digest = image.slice(image.indexOf('@') + 1);
  return all
    .filter(({ knowledge }) => digest.startsWith(knowledge.digest))
    .sort((a, b) => b.knowledge.digest.length - a.knowledge.digest.length);
}

/** What no image says of itself: it is kept, of the file that is written anew or of the one that it takes the place of. */
function keptOf(before: readonly NamedImageKnowledge[]): Pick<ImageKnowledge, 'rcclFixed'> {
  const known = before.find(({ knowledge }) => knowledge.rcclFixed !== undefined);
  return known === undefined ? {} : { rcclFixed: known.knowledge.rcclFixed };
}

/** By the last part of the repository and the first twelve digits of the digest: `vllm-da4029666000`. */
export function imageFileName(image: string): string {
  const [, repository = '', digits = ''] = /([^/]+)@sha256:([0-9a-f]{12})/.exec(image) ?? [];
  return `${repository}-${digits}`;
}

/** What a file of `images/` says after an image was asked; `taken` is the day. */
export function knowledgeFrom(
  { version, entrypoint, flags, toolParsers, reasoningParsers }: ImageDescription,
  { image, engineKind }: Pick<Release, 'image' | 'engineKind'>,
  taken: string,
): ImageKnowledge {
  return {
    digest: image.slice(image.indexOf('@') + 1),
    engine: engineKind,
    version,
    source: 'the image itself, by slot image learn',
    taken,
    complete: true,
    entrypoint,
    flags: Object.fromEntries(Object.entries(flags).sort(([a], [b]) => (a < b ? -1 : 1))),
    toolParsers: [...toolParsers].sort(),
    reasoningParsers: [...reasoningParsers].sort(),
  };
}

const modeline = '# yaml-language-server: $schema=./image.schema.json\n';

/** One line a flag and all words quoted: a difference shows what an image took away, and no reader types a word. */
export function textOf(knowledge: ImageKnowledge): string {
  const { flags, ...rest } = knowledge;
  const word = (value: unknown): string => JSON.stringify(value);
  const head = stringify(rest, { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN', lineWidth: 0 });
  const lines = Object.entries(flags).map(([name, flag]) => `  ${word(name)}: ${word(flag)}\n`);
  return `${modeline}${head}flags:\n${lines.join('')}`;
}

/** Says what became of the file. The same answer on another day leaves it as it is. */
function write(folder: string, name: string, knowledge: ImageKnowledge): string {
  const file = `${imagesFolder}/${name}.yaml`;
  const path = join(folder, file);
  const counted = `${Object.keys(knowledge.flags).length} flags, ${knowledge.toolParsers.length} tool parsers, ${knowledge.reasoningParsers.length} reasoning parsers`;
  if (existsSync(path)) {
    const { taken } = loadImageKnowledge(file, readFileSync(path, 'utf8'));
    if (readFileSync(path, 'utf8') === textOf({ ...knowledge, taken }))
      return `${file} says so since ${taken}: ${counted}`;
  }
  replaceText(path, textOf(knowledge));
  return `${file}: ${counted}`;
}
