import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { emulator } from './machine.ts';
import { templateExists, vmFolder } from './template.ts';

/** Whether a virtual machine can be had here, and if not, what is in the way and what to do. */
export type VmAbility = { readonly ok: true } | { readonly ok: false; readonly reason: string };

const toRun = [emulator, 'qemu-img', 'ssh'];
const toBuild = ['debootstrap', 'mke2fs', 'xz', 'chroot'];

/** Looks only. Root is needed while the template for machines of this size (default 2048 MiB) is missing, not afterwards. */
export async function canRunVm(memoryMiB = 2048): Promise<VmAbility> {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return refused(
      `the virtual machine lab needs Linux on x86-64, this is ${process.platform} on ${process.arch}`,
    );
  const missing = missingPrograms(toRun);
  if (missing.length > 0)
    return refused(
      `not found: ${missing.join(', ')} (Debian: apt install qemu-system-x86 qemu-utils openssh-client)`,
    );
  if (process.getuid?.() !== 0)
    return (await templateExists(memoryMiB))
      ? { ok: true }
      : refused(
          `the image is missing or stale, and only root can make it: create one virtual machine as root with XDG_CACHE_HOME set so that ${vmFolder()} is used`,
        );
  const missingToBuild = missingPrograms(toBuild);
  if (missingToBuild.length > 0)
    return refused(
      `not found: ${missingToBuild.join(', ')} (Debian: apt install debootstrap e2fsprogs xz-utils)`,
    );
  return { ok: true };
}

function refused(reason: string): VmAbility {
  return { ok: false, reason };
}

function missingPrograms(programs: readonly string[]): string[] {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return programs.filter((program) => !folders.some((folder) => existsSync(join(folder, program))));
}
