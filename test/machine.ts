import { existsSync } from 'node:fs';
import type { TestProject } from 'vitest/node';
import { canRunLab } from '../lab/lab.ts';
import { installPackages } from '../lab/programs.ts';
import { describe, prepareToolchain } from '../toolchain/prepare.ts';

/** Makes what the tests of a project need, before the first one, so that no test's time limit pays for it. */
export default async function setup({ name }: TestProject): Promise<void> {
  const { report } = await prepareToolchain({ progress: console.error });
  console.error(describe(report));
  if (name === 'conformance' && !existsSync('/usr/sbin/sshd')) {
    await installPackages(['openssh-server'], console.error);
  }
  if (name === 'lab') {
    for (const kind of ['nspawn', 'vm'] as const) {
      const ability = await canRunLab(kind, console.error);
      if (!ability.ok)
        throw new Error(`no lab of kind ${kind}: ${ability.reason}; without labs: npm run test:fast`);
    }
  }
}
