import { type RenderedArguments, renderedArguments } from '../engines/rendered-arguments.ts';
import { perRelease } from '../per-release.ts';
import type { Release } from '../release.ts';

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
  return familyPattern(family).test([payload.folder.split('/').at(-1), payload.entry].join(' '));
}

/** Families that rules speak of. */
export const families = ['glm', 'qwen'] as const;
type Family = (typeof families)[number];

function familyPattern(family: Family): RegExp {
  return new RegExp(`\\b${family}`, 'i');
}

/** Some of its layers keep a state instead of a cache: by its `model`, or by the name of Qwen's hybrid line. */
export function isHybrid(release: Release): boolean {
  return release.review?.model?.hybrid ?? /qwen.*next/i.test(namesIn(release));
}

function namesIn({ payload, servedNames }: Release): string {
  const { folder, entry = '' } = payload;
  return [folder.split('/').at(-1), entry, ...servedNames].join(' ');
}

export function offloadsExperts(release: Release): boolean {
  return vllmArguments(release)?.isOn('--enable-expert-offload') ?? false;
}

/** `method` of the speculative decoding, and its drafter; undefined: there is none. */
export function speculationOf(
  release: Release,
): { readonly method: string; readonly drafter: string } | undefined {
  const config = vllmArguments(release)?.object('--speculative-config');
  return config && { method: String(config.method ?? ''), drafter: String(config.model ?? '') };
}

/** Multi-token prediction by whatever name, e.g. `mtp`, `qwen3_next_mtp`. */
export function predictsTokens(release: Release): boolean {
  return /mtp/i.test(speculationOf(release)?.method ?? '');
}
