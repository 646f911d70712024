import { type RenderedArguments, renderedArguments } from '../engines/rendered-arguments.ts';
import { perRelease } from '../per-release.ts';
import type { Release } from '../release.ts';
import { hostPathOf, normalPath } from './mounts.ts';

/** Arguments of an engine of kind vLLM; undefined: it is of another kind, whose flags mean other things. */
export const vllmArguments = perRelease((release): RenderedArguments | undefined =>
  release.engineKind === 'vllm' ? renderedArguments(release.arguments) : undefined,
);

/** By the shape's `model`; a shape that names none is known by the names of its payload and what it serves. */
export function isOfFamily(release: Release, family: Family): boolean {
  return familyPattern(family).test(release.review?.model?.family ?? namesIn(release));
}

/** Whether the payload's name says so. What is served may keep the name of another model for its clients. */
export function isNamedAfter({ payload }: Release, family: Family): boolean {
  return familyPattern(family).test([namingPart(payload.folder), payload.entry].join(' '));
}

/** Families that rules speak of. */
export const families = ['glm', 'qwen'] as const;
type Family = (typeof families)[number];

/** At the beginning of a word, of which `_` is none: `Intel_GLM-5`; and in what else the families are called. */
export function familyPattern(family: Family): RegExp {
  return new RegExp(`(?<![a-z0-9])(?:chat|code)?${family}`, 'i');
}

/** Folders that hold a model without saying which: hubs' snapshots, revisions, versions. */
const namesNothing =
  /^(?:[0-9a-f]{7,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|snapshots?|refs|main|master|latest|current|models?|weights|gguf|v?\d[\d.]*)$/i;

/** The last part of a path that says something. */
function namingPart(folder: string): string {
  return folder.split('/').findLast((part) => part !== '' && !namesNothing.test(part)) ?? '';
}

/** Some of its layers keep a state instead of a cache: by its `model`, or by the name of Qwen's hybrid line. */
export function isHybrid(release: Release): boolean {
  return release.review?.model?.hybrid ?? /qwen.*next/i.test(namesIn(release));
}

function namesIn({ payload, servedNames }: Release): string {
  return [namingPart(payload.folder), payload.entry ?? '', ...servedNames].join(' ');
}

/** Processes with a GPU each that the engine starts on this host. */
export function ranksOf(release: Release): number {
  const words = vllmArguments(release);
  const count = (flag: `--${string}`): number => Math.max(1, words?.number(flag) ?? 1);
  const replicas = words?.number('--data-parallel-size-local') ?? count('--data-parallel-size');
  return (
    count('--tensor-parallel-size') *
    count('--pipeline-parallel-size') *
    count('--prefill-context-parallel-size') *
    Math.max(1, replicas)
  );
}

export function offloadsExperts(release: Release): boolean {
  return vllmArguments(release)?.isOn('--enable-expert-offload') ?? false;
}

/** Speculative decoding as the engine reads it. */
export interface Speculation {
  /** As written; where it is left out, what the engine finds by the drafter. */
  readonly method: string;
  /** Path of the drafter in the container, or its name; empty: none is named. */
  readonly drafter: string;
  /** The same on the host; undefined: it is in no mount. */
  readonly drafterOnHost: string | undefined;
  /** As a rule shows it, e.g. `--speculative-config with method mtp`. */
  readonly shown: string;
}

const speculationFlags = ['--speculative-config', '--spec-method', '--spec-model', '--spec-tokens'] as const;

/** Undefined: there is none. */
export const speculationOf = perRelease((release): Speculation | undefined => {
  const words = vllmArguments(release);
  if (words === undefined) return undefined;
  const flags = speculationFlags.filter(
    (flag) =>
      words.flags.some((name) => name === flag || name.startsWith(`${flag}.`)) &&
      !/^\s*(?:none|null)\s*$/i.test(words.value(flag) ?? ''),
  );
  if (flags.length === 0) return undefined;
  const config = words.object('--speculative-config') ?? {};
  const said = (key: string, shorthand: `--${string}`): string =>
    [config[key], words.value(shorthand)].filter((value) => value != null).join(' ');
  const written = said('method', '--spec-method');
  const model = said('model', '--spec-model');
  const drafter = model.startsWith('/') ? normalPath(model) : model;
  const drafterOnHost = hostPathOf(release, drafter);
  const isOpen = written.trim() === '' || isPayloadAsDrafter(written, drafterOnHost, release);
  const method = isOpen ? methodBy(`${drafter} ${drafterOnHost ?? ''}`) : written;
  const how = isOpen && method !== written ? `no method, which makes it ${method}` : `method ${method}`;
  return { method, drafter, drafterOnHost, shown: `${flags.join(' and ')} with ${how}` };
});

/** A draft model that is the payload itself: vLLM finds its layers for multi-token prediction. */
function isPayloadAsDrafter(
  method: string,
  drafterOnHost: string | undefined,
  { payload }: Release,
): boolean {
  return method === 'draft_model' && drafterOnHost === normalPath(payload.folder);
}

/** What vLLM finds by the drafter's name; by its weights it is multi-token prediction where these models have one. */
function methodBy(names: string): string {
  return /ngram|eagle|dflash|dspark|medusa/i.exec(names)?.[0].toLowerCase() ?? 'mtp';
}

/** Multi-token prediction by whatever name, e.g. `mtp`, `qwen3_next_mtp`. */
export function predictsTokens(release: Release): boolean {
  return /mtp|nextn/i.test(speculationOf(release)?.method ?? '');
}
