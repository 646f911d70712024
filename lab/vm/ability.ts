import { missingPrograms, packagesOf } from '../programs.ts';
import { cacheHome } from './cache-owner.ts';
import { templateExists, vmFolder } from './template.ts';

/** Whether a virtual machine can be had here, and if not, what is in the way and what to do. */
export type VmAbility = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Looks only. Root is needed while the template for machines of this size (default 2048 MiB) is missing, not afterwards. */
export async function canRunVm(memoryMiB = 2048): Promise<VmAbility> {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return refused(
      `the virtual machine lab needs Linux on x86-64, this is ${process.platform} on ${process.arch}`,
    );
  const missing = missingPrograms('vm');
  if (missing.length > 0)
    return refused(
      `not found: ${missing.join(', ')}; on Debian: apt-get install ${packagesOf('vm', missing).join(' ')}`,
    );
  if (process.getuid?.() === 0 || (await templateExists(memoryMiB))) return { ok: true };
  return refused(
    `the image in ${vmFolder()} is missing or stale, and only root can make it: sudo XDG_CACHE_HOME=${cacheHome()} npm run lab up -- --kind vm`,
  );
}

function refused(reason: string): VmAbility {
  return { ok: false, reason };
}
