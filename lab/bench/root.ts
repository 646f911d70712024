import type { LabHost } from '../host.ts';

/** Runs a command as root on the lab host and returns what it printed. Throws when it fails. */
export async function rootOn(lab: LabHost, command: string, input?: string): Promise<string> {
  const answer = await lab.ssh(command, { root: true, ...(input !== undefined && { input }) });
  if (answer.exitCode !== 0)
    throw new Error(`${lab.name}: ${command}: exit ${answer.exitCode}: ${answer.stderr}`);
  return answer.stdout;
}
