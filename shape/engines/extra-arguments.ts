import * as z from 'zod';
import { lineSchema } from '../text.ts';

/**
 * Arguments written by hand, checked for what went wrong with such lists: flag and value in one element,
 * a flag that a field renders already (also abbreviated, which argparse accepts), a flag twice, the
 * entrypoint repeated, and quotes that a shell would have removed.
 */
export function extraArgumentsSchema(ownedFlags: readonly string[], entrypoint: readonly string[]) {
  return z
    .array(lineSchema)
    .default([])
    .superRefine((elements, context) => {
      const seen = new Set<string>();
      for (const [index, element] of elements.entries()) {
        const complaint = complaintAbout(element, index, ownedFlags, entrypoint, seen);
        if (complaint === undefined) continue;
        const [message, remedy] = complaint;
        context.addIssue({ code: 'custom', path: [index], message, params: { remedy } });
      }
    });
}

function complaintAbout(
  element: string,
  index: number,
  ownedFlags: readonly string[],
  entrypoint: readonly string[],
  seen: Set<string>,
): [message: string, remedy: string] | undefined {
  if (index === 0 && entrypoint.includes(element)) {
    return [`must not begin with ${element}: the image's entrypoint is that already`, 'remove it'];
  }
  const [, flag, value] = /^(--[A-Za-z0-9][\w.-]*)(?:=(.*))?$/s.exec(element) ?? [];
  const quoted = value ?? element;
  if (quoted.length > 1 && quoted.startsWith("'") && quoted.endsWith("'")) {
    return ['must not be wrapped in single quotes: no shell would take them away', 'remove the quotes'];
  }
  if (flag === undefined) {
    return /^--?[A-Za-z][\w-]*\s/.test(element)
      ? ['must not hold a flag and its value in one element', 'write two elements, or --flag=value']
      : undefined;
  }
  const owned = ownedFlags.find((name) => name === flag) ?? ownedFlags.find((name) => name.startsWith(flag));
  if (owned !== undefined) {
    return [`must not name ${owned}: a field of its own, or the host, decides it`, 'use that field'];
  }
  if (seen.has(flag)) return [`must not name ${flag} twice`, 'keep one of them'];
  seen.add(flag);
  return undefined;
}
