import {
  type ChangedFlag,
  changeAbbreviatedBy,
  type Flag,
  flagAbbreviatedBy,
  flagNamed,
  needsValue,
  type Occurrence,
  occurrencesIn,
} from '../engines/command-line.ts';
import { commandLines } from '../engines/engine.ts';
import { beginsAs, flagsIn, type ImageFacts } from '../engines/image-knowledge.ts';
import { renderedArguments } from '../engines/rendered-arguments.ts';
import type { Release } from '../release.ts';
import { nearest } from '../schema-keys.ts';
import type { Rule, RuleSubject } from './rule.ts';

const learn = 'npx slot image learn <stack> asks the image itself and writes it down';

/** What every vLLM is started with here: a record that does not spell them out leaves nothing in doubt. */
const always = ['--host', '--port', '--served-model-name', '--tensor-parallel-size'];

const oneGuards =
  'the engine ends at once with a flag that its image does not have, when the old one is stopped';

/** Says what is wrong with the flags of a release by what is known of its image. */
type Judge = (occurrence: Occurrence, flags: readonly Flag[], image: ImageFacts) => string | undefined;

function judgeFlags(judge: Judge): Rule['examine'] {
  return ({ release }: RuleSubject) => {
    const image = release.review?.image;
    if (image === undefined) return undefined;
    const flags = flagsIn(image);
    return listed(occurrencesIn(release.arguments).map((occurrence) => judge(occurrence, flags, image)));
  };
}

function listed(findings: readonly (string | undefined)[]): string | undefined {
  const found = findings.filter((finding) => finding !== undefined);
  return found.length === 0 ? undefined : [...new Set(found)].join('; ');
}

export const imageKnown: Rule = {
  id: 'image-known',
  severity: 'warn',
  reason:
    'nothing is known of the flags and parsers of an image with this digest, so nothing of them is checked',
  evidence: 'each image has its own: a fork adds flags, a release takes some away (field reports)',
  remedy: learn,
  examine: ({ release }) =>
    release.review?.image === undefined ? `no file of images/ speaks of ${digestOf(release)}` : undefined,
};

export const imageEngine: Rule = {
  id: 'image-engine',
  severity: 'refuse',
  reason: 'the arguments are made for one kind of engine, and the image holds another',
  evidence: 'the file of images/ that speaks of the image',
  remedy: 'name the image of the engine that is meant, or set slot:shape.engine.kind to the kind in it',
  examine: ({ release }) => {
    const image = release.review?.image;
    return image?.engine === undefined || image.engine === release.engineKind
      ? undefined
      : `${release.engineKind} on an image of ${image.engine} (images/${image.name}.yaml)`;
  },
};

export const imageEntrypoint: Rule = {
  id: 'image-entrypoint',
  severity: 'refuse',
  reason: 'arguments that are made for another beginning are not recognised, or start a default model',
  evidence: "the image's own entrypoint (images/); field reports of vllm serve and of its api_server",
  remedy: 'take an image that begins so; for R9V, correct slot:shape.engine.entrypoint',
  examine: ({ release }) => {
    const { image } = release.review ?? {};
    const wanted = release.entrypoint;
    if (image?.entrypoint === undefined || wanted === undefined) return undefined;
    if (beginsAs(image.entrypoint, wanted)) return undefined;
    const actual = image.entrypoint.length === 0 ? 'nothing of its own' : JSON.stringify(image.entrypoint);
    return `the image begins with ${actual} (images/${image.name}.yaml), the arguments are made for ${JSON.stringify(wanted)}`;
  },
};

/** Linux: MAX_ARG_STRLEN of include/uapi/linux/binfmts.h, 32 pages, the NUL at its end included. */
const mostWordBytes = 131_072;

export const wordLength: Rule = {
  id: 'word-length',
  severity: 'refuse',
  reason: 'the kernel starts no program with a longer argument or variable: Argument list too long',
  evidence: 'Linux: MAX_ARG_STRLEN in include/uapi/linux/binfmts.h, execve(2)',
  remedy: 'shorten it, or put it in a file that the engine reads',
  examine: ({ release }) => {
    const variables = Object.entries(release.environment).map(
      ([name, value]) => [`variable ${name}`, `${name}=${value}`] as const,
    );
    const words = release.arguments.map((word, index) => [`argument ${index + 1}`, word] as const);
    return listed(
      [...words, ...variables].map(([what, word]) => {
        const bytes = Buffer.byteLength(word) + 1;
        return bytes > mostWordBytes ? `${what} has ${bytes} bytes, of ${mostWordBytes}` : undefined;
      }),
    );
  },
};

export const prefillInOneStep: Rule = {
  id: 'prefill-in-one-step',
  severity: 'refuse',
  reason: 'without chunked prefill a prompt must fit into one step, so the engine ends at once',
  evidence:
    'vLLM: SchedulerConfig.verify_max_model_len, the same from 0.15 to 0.29 (vllm-project/vllm#33109, unslothai/unsloth-zoo#1211)',
  remedy: 'take --no-enable-chunked-prefill out, or raise maxBatchedTokens to maxModelLength',
  examine: ({ release }) => {
    if (release.engineKind !== 'vllm') return undefined;
    const words = renderedArguments(release.arguments);
    const batched = words.number('--max-num-batched-tokens');
    if (words.isOn('--enable-chunked-prefill') !== false || batched === undefined) return undefined;
    return batched < release.maxModelLength
      ? `--no-enable-chunked-prefill with ${batched} batched tokens at a length of ${release.maxModelLength}`
      : undefined;
  },
};

export const flagsKnown: Rule = {
  id: 'flags-known',
  severity: 'refuse',
  reason: oneGuards,
  evidence: "the image's own parser, asked by slot image learn",
  remedy: 'correct the flag, or learn the image anew if its digest changed',
  examine: judgeFlags(({ name, written }, flags, image) =>
    !image.complete || flagNamed(flags, name) !== undefined || flagAbbreviatedBy(flags, name) !== undefined
      ? undefined
      : unknown(`${written} is not known to the image (images/${image.name}.yaml)`, name, flags),
  ),
};

export const flagsRecorded: Rule = {
  id: 'flags-recorded',
  severity: 'warn',
  reason: 'what is on record of this image does not name all of its flags, so these cannot be checked',
  evidence: 'the record names the flags that it measured, and no more',
  remedy: learn,
  examine: (subject) => {
    const image = subject.release.review?.image;
    if (image === undefined || image.complete) return undefined;
    const flags = flagsIn(image);
    const names = occurrencesIn(subject.release.arguments)
      .filter(
        ({ name }) =>
          !always.includes(name) &&
          flagNamed(flags, name) === undefined &&
          flagAbbreviatedBy(flags, name) === undefined,
      )
      .map(({ written }) => written);
    return names.length === 0 ? undefined : `images/${image.name}.yaml does not name ${names.join(', ')}`;
  },
};

export const flagsWhole: Rule = {
  id: 'flags-whole',
  severity: 'refuse',
  reason: 'a flag that is cut short means another one as soon as an image has a second flag that begins so',
  evidence: "Python's argparse takes the beginning of a flag for the flag (allow_abbrev)",
  remedy: 'write the flag in full',
  examine: judgeFlags(({ name, written }, flags) => {
    const whole = flagAbbreviatedBy(flags, name);
    return whole === undefined ? undefined : `${written} is the beginning of ${whole}`;
  }),
};

export const flagsCurrent: Rule = {
  id: 'flags-current',
  severity: 'refuse',
  reason: 'the engine ends at once with a flag that a release took away, or reads the next flag as its value',
  evidence: "the engines' own histories, named with each flag",
  remedy:
    'do as it is said of the flag; where the image is older, learn it, or except the shape with that reason',
  examine: ({ release }) => {
    const commandLine = commandLines[release.engineKind];
    const { changed } = commandLine;
    const image = release.review?.image;
    const flags = image === undefined ? [] : flagsIn(image);
    return listed(
      occurrencesIn(release.arguments).map((occurrence) => {
        // What the image says of itself counts for more than its public history.
        if (flagNamed(flags, occurrence.name) !== undefined) return undefined;
        const change = changed.find(({ names }) => names.some((name) => isOf(name, occurrence)));
        if (change !== undefined) return changeText(change, occurrence);
        const cut = changeAbbreviatedBy(commandLine, occurrence.name);
        return (
          cut &&
          changeText(cut.change, {
            ...occurrence,
            written: `${cut.whole}, cut short to ${occurrence.written},`,
          })
        );
      }),
    );
  },
};

export const flagValues: Rule = {
  id: 'flag-values',
  severity: 'refuse',
  reason: 'the engine ends at once with a value that its parser does not take, when the old one is stopped',
  evidence: "the image's own parser, asked by slot image learn",
  remedy: 'give the flag one of the values that it takes',
  examine: judgeFlags(({ name, written, values }, flags) => {
    const flag = flagNamed(flags, name);
    if (flag === undefined || name.includes('.')) return undefined;
    const [first] = values;
    if (first === undefined) return needsValue(flag) ? `${written} has no value, and needs one` : undefined;
    if (flag.takes === 'nothing') return `${written} takes no value, and has ${JSON.stringify(first)}`;
    if (flag.takes !== 'list' && values.length > 1)
      return `${written} takes one value, and has ${values.length}: ${values.join(' ')}`;
    const { choices } = flag;
    if (choices === undefined) return undefined;
    const strange = values.find((value) => !choices.includes(value));
    return strange === undefined
      ? undefined
      : `${written} does not take ${JSON.stringify(strange)}, only ${choices.join(', ')}`;
  }),
};

/** The parsers that a release names and its image is not known to have. */
function unknownParsers(release: Release, isComplete: boolean): string | undefined {
  const image = release.review?.image;
  if (image === undefined || image.complete !== isComplete) return undefined;
  const kinds: Readonly<Record<string, readonly string[]>> = {
    '--tool-call-parser': image.toolParsers,
    '--reasoning-parser': image.reasoningParsers,
  };
  return listed(
    occurrencesIn(release.arguments).map(({ name, values: [parser] }) => {
      const known = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
      if (known === undefined || parser === undefined || known.includes(parser)) return undefined;
      const meant = known[0] === undefined ? '' : `; did you mean ${known[0]}?`;
      return `${name} ${parser} is not in images/${image.name}.yaml${meant}`;
    }),
  );
}

export const parsersKnown: Rule = {
  id: 'parsers-known',
  severity: 'refuse',
  reason: 'the engine ends at once with a parser that its image does not have, when the old one is stopped',
  evidence: "the image's own registries, asked by slot image learn",
  remedy: 'name a parser that the image has, or learn the image anew if its digest changed',
  examine: ({ release }) => unknownParsers(release, true),
};

export const parsersRecorded: Rule = {
  id: 'parsers-recorded',
  severity: 'warn',
  reason: 'what is on record of this image does not name all of its parsers, so this one cannot be checked',
  evidence: 'the record names the parsers that it measured, and no more',
  remedy: learn,
  examine: ({ release }) => unknownParsers(release, false),
};

function digestOf({ image }: Release): string {
  return image.split('@').at(-1) ?? image;
}

function unknown(message: string, name: string, flags: readonly Flag[]): string {
  const meant = nearest(
    name,
    flags.map((flag) => flag.name),
  );
  return meant === undefined ? message : `${message}; did you mean ${meant}?`;
}

function isOf(flag: string, { name }: Occurrence): boolean {
  return name === flag || name.replace(/^--no-/, '--') === flag;
}

function changeText(change: ChangedFlag, { written, values }: Occurrence): string | undefined {
  if (change.now === 'value' && values.length > 0) return undefined;
  const what = change.now === 'gone' ? 'is gone' : 'takes a value, and would take the next flag for it';
  return `${written} ${what} since ${change.since}: ${change.instead} (${change.source})`;
}
