import { afterAll, beforeAll } from 'vitest';
import { describe as describeParts, prepareToolchain } from '../../toolchain/prepare.ts';
import { createProject } from './project.ts';
import { type Sshd, startSshd } from './sshd.ts';

/** Gives the tests of one file a project with its plugins, and an ssh server; both are gone afterwards. */
export function useProjectAndSshd(): { project: ReturnType<typeof createProject>; sshd: Sshd } {
  const used = {} as { project: ReturnType<typeof createProject>; sshd: Sshd };
  beforeAll(async () => {
    const toolchain = await prepareToolchain();
    console.info(describeParts(toolchain.report.filter(({ part }) => part.includes('resource'))));
    used.project = createProject(toolchain);
    used.sshd = await startSshd();
    await used.project.init();
  });
  afterAll(async () => {
    used.project.remove();
    await used.sshd.stop();
  });
  return used;
}
