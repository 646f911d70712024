import * as z from 'zod';

/** Every rule by its id, the name by which a shape is excepted from it. */
export const ruleIds = ['image-by-digest', 'image-without-tag'] as const;
export type RuleId = (typeof ruleIds)[number];

export const ruleIdSchema = z.enum(ruleIds);
