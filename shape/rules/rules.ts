import { imageByDigest, imageWithoutTag } from './image.ts';
import type { Rule } from './rule.ts';

/** All rules, in the order in which a review reads them. */
export const rules: readonly Rule[] = [imageByDigest, imageWithoutTag];
