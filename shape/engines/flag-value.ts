import * as z from 'zod';
import { forms } from '../forms.ts';
import { isOneLine } from '../text.ts';

const notFlagValue = 'must be one line of well-formed text without NUL, not empty, and not begin with a dash';

/** Text that stands behind a flag: with a dash in front the engine would read it as the next flag. */
export const flagValueSchema = z
  .string()
  .refine((text) => isOneLine(text) && text !== '' && !text.startsWith('-'), notFlagValue)
  .register(forms, {
    name: 'value of a flag',
    limit: notFlagValue,
    examples: ['glm47'],
    fitsAnyMeaning: false,
    pattern: '^[^-]',
  });

const notServedName = `${notFlagValue}, nor begin or end with a blank`;

/** A name by which clients call a model. */
export const servedNameSchema = flagValueSchema
  .refine((name) => name.trim() === name, notServedName)
  .register(forms, {
    name: 'name for clients',
    limit: notServedName,
    examples: ['glm53-flash'],
    pattern: '^[^\\s-](?:.*\\S)?$',
  });
