import type { NamedImageKnowledge } from '../../../../shape/engines/image-knowledge.ts';
import type { HostConfig } from '../../../../shape/host.ts';
import type { Measured } from '../../../../shape/measured.ts';
import type { Model } from '../../../../shape/model.ts';
import { planRelease } from '../../../../shape/plan.ts';
import type { Release } from '../../../../shape/release.ts';
import type { RuleId } from '../../../../shape/rules/rule-ids.ts';
import type { ShapeConfig } from '../../../../shape/shape.ts';
import { readTemplates } from '../../../../templates/templates.ts';
import { suppliedHost, suppliedShape } from '../../../fixtures/operator-files.ts';

/** A release, and what one rule must make of it. */
export interface RuleCase {
  /** Ends the sentence "fires with …" or "is silent with …". */
  readonly what: string;
  readonly release: Release;
  readonly measured?: Measured;
  /** Part of what the rule finds, where that matters. */
  readonly found?: string;
}

/**
 * Cases by the id of their rule. Every file in `cases/` exports its own as `cases`; `rules.test.ts` collects them,
 * and fails for a rule that has not at least one of each kind.
 */
export type RuleCases = Partial<
  Record<RuleId, { readonly fires: readonly RuleCase[]; readonly silent: readonly RuleCase[] }>
>;

/** What differs from an operator's stack files; of `engine`, `limits` and other maps only the named keys. */
export interface Changes {
  readonly shape?: object;
  readonly host?: Partial<HostConfig>;
  readonly model?: Model;
  /** What is known of the image. */
  readonly image?: NamedImageKnowledge;
  /** Texts of diffs by their path below `patches/`. */
  readonly patches?: Readonly<Record<string, string>>;
}

/** A stack's release as it is planned, with some of its configuration changed, and excepted from nothing. */
export function planned(
  stack: string,
  { shape = {}, host = {}, model, image, patches = {} }: Changes = {},
): Release {
  return planRelease({
    host: { ...suppliedHost(), ...host },
    shape: merged({ ...suppliedShape(stack), exceptions: {} }, shape) as ShapeConfig,
    stack,
    templates: readTemplates(),
    model,
    image,
    patches: new Map(Object.entries(patches)),
  });
}

/** R9V with more arguments than it needs. */
export function r9vWith(...more: readonly string[]): Release {
  const { engine } = suppliedShape('r9v-q8_0');
  const needed = engine.kind === 'r9v' ? engine.arguments : [];
  return planned('r9v-q8_0', { shape: { engine: { arguments: [...needed, ...more] } } });
}

/** A release whose unit has another text in place of one that must be there. */
export function withUnit(release: Release, present: string, instead: string): Release {
  if (!release.unit.includes(present)) throw new Error(`the unit has no ${present}`);
  return { ...release, unit: release.unit.replace(present, () => instead) };
}

function merged(value: unknown, changes: unknown): unknown {
  if (!isMap(value) || !isMap(changes)) return changes;
  return {
    ...value,
    ...Object.fromEntries(Object.entries(changes).map(([key, change]) => [key, merged(value[key], change)])),
  };
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}
