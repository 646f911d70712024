import * as z from 'zod';
import { forms } from './forms.ts';

const notOneLine = 'must be one line of well-formed text without NUL';

/**
 * Text that reaches a program as it is written: one line, because a physical newline would end a directive of
 * the unit, and without NUL, which ends a C string.
 */
export const lineSchema = z
  .string()
  .refine(isOneLine, notOneLine)
  .register(forms, { name: 'text', limit: notOneLine, examples: [] });

export const nonEmptyLineSchema = z
  .string()
  .min(1, 'must not be empty')
  .refine(isOneLine, notOneLine)
  .register(forms, { name: 'text, not empty', limit: `${notOneLine}, and not empty`, examples: [] });

/** A noncharacter is no text for systemd either: it would not tell anything of a unit that has one any more. */
export function isOneLine(text: string): boolean {
  return text.isWellFormed() && !/[\0\n\r\p{Noncharacter_Code_Point}]/u.test(text);
}

/** A path that can stand in podman's `--volume` and `--device`, which give `:` and `,` a meaning of their own. */
const mountable = /^[^\p{Cc}:,\\]+$/u;

const isExpandedByShells = (path: string): boolean => /^(?:~|\$(?:HOME|\{HOME\})(?:\/|$))/.test(path);

/** What a shell writes out and nobody else does. */
const unexpanded = {
  error: 'must not begin with ~ or $HOME: no shell is there to write them out',
  params: { remedy: 'write the whole path, e.g. /home/dank/x' },
};

const notAbsolute = 'must be an absolute path without "..", ":", ",", backslash and control characters';

/** An absolute path without `..`, `:`, `,`, backslash and control characters. */
export const absolutePathSchema = z
  .string()
  .refine((path) => !isExpandedByShells(path), { ...unexpanded, abort: true })
  .refine((path) => path.startsWith('/') && isMountable(path), { error: notAbsolute })
  .register(forms, {
    name: 'absolute path',
    limit: notAbsolute,
    examples: ['/home/dank/models'],
    fitsAnyMeaning: false,
    pattern: '^/[^:,\\\\]*$',
  });

const notMountable = 'must be a path without "..", ":", ",", backslash and control characters';

/** A path as {@link absolutePathSchema}, or one relative to a root that the host declares. */
export const hostPathSchema = z
  .string()
  .refine((path) => !isExpandedByShells(path), { ...unexpanded, abort: true })
  .refine(isMountable, { error: notMountable })
  .register(forms, {
    name: 'path',
    limit: notMountable,
    examples: ['GLM-5.3-Flash-W4A16-AutoRound'],
    fitsAnyMeaning: false,
    pattern: '^[^~:,\\\\][^:,\\\\]*$',
  });

function isMountable(path: string): boolean {
  return mountable.test(path) && path.isWellFormed() && !path.split('/').includes('..');
}

const notName = 'must be 1 to 63 of a-z 0-9 _ . - and begin and end with a letter or digit';

/** A name that can be part of a unit's, a container's and a file's name. */
export const nameSchema = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9_.-]{0,61}[a-z0-9])?$/, notName)
  .register(forms, { name: 'name', limit: notName, examples: ['glm-w4a16'], fitsAnyMeaning: false });

/** What systemd calls kinds of units: a name that ends so would give `x.service.service`. */
const unitEnding = /\.(?:service|target|socket|timer|mount|slice|scope|path)$/;

/** The name from which units are named. */
export const serviceNameSchema = nameSchema.superRefine((name, context) => {
  if (!unitEnding.test(name)) return;
  context.addIssue({
    code: 'custom',
    message: 'must be without the ending of a unit: units are named from it',
    params: { remedy: `write ${name.replace(unitEnding, '')}` },
  });
});
