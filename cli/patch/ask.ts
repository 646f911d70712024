import * as z from 'zod';
import { asRoot, runOnHost, SshFailure } from '../../remote/ssh.ts';
import type { HostConfig } from '../../shape/host.ts';
import { type ImageAnswer, type ImageFilesRequest, imageFilesAnswerSchema } from '../../shape/image-files.ts';
import { slotProgram } from '../../shape/names.ts';
import { longSeconds } from '../host-program.ts';

export type HostAnswer =
  | { readonly kind: 'answered'; readonly images: ReadonlyMap<string, ImageAnswer> }
  | { readonly kind: 'not asked'; readonly reason: string };

/** Not an exit code of the agent, of sudo or of a shell. */
const agentMissing = 93;
/** The agent's, for a verb that it does not know. */
const agentUsage = 64;

/**
 * Asks a host for the pristine files of images, over one connection.
 *
 * @param say told of what takes minutes there
 */
export async function askForFiles(
  host: HostConfig,
  request: ImageFilesRequest,
  say: (text: string) => void,
): Promise<HostAnswer> {
  const program = asRoot(host.user, `${slotProgram} image-files`);
  const command = `sh -c 'test -e ${slotProgram} || exit ${agentMissing}; exec ${program}'`;
  const notAsked = (reason: string): HostAnswer => ({ kind: 'not asked', reason });
  try {
    const pulls = request.images.some(({ pull }) => pull);
    const { exitCode, stdout, stderr } = await runOnHost(host, command, {
      input: JSON.stringify(request),
      timeoutSeconds: pulls ? longSeconds : 600,
      onStderr: say,
    });
    const setUp = `run \`pulumi up -s ${host.name}\``;
    if (exitCode === agentMissing) return notAsked(`${host.name} is not set up: ${setUp}`);
    if (exitCode === agentUsage) {
      return notAsked(`${host.name} has another host program than this project: ${setUp}`);
    }
    if (exitCode !== 0) {
      return notAsked(`${host.name}: exit code ${exitCode}: ${stderr.trim() || 'no message'}`);
    }
    const { images } = imageFilesAnswerSchema.parse(JSON.parse(stdout));
    return { kind: 'answered', images: new Map(images.map((answer) => [answer.image, answer])) };
  } catch (error) {
    if (error instanceof SshFailure) return notAsked(error.message);
    if (!(error instanceof SyntaxError || error instanceof z.ZodError)) throw error;
    return notAsked(`${host.name} answers in another form: run \`pulumi up -s ${host.name}\``);
  }
}
