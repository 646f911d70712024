import * as z from 'zod';
import { agentMissing, ifSetUp } from '../../remote/inspect.ts';
import { runOnHost, SshFailure } from '../../remote/ssh.ts';
import type { HostConfig } from '../../shape/host.ts';
import {
  type CompileAnswer,
  type CompileRequest,
  compileAnswerSchema,
  type ImageAnswer,
  type ImageFilesRequest,
  imageFilesAnswerSchema,
} from '../../shape/image-files.ts';
import { longSeconds } from '../host-program.ts';

export type HostAnswer =
  | { readonly kind: 'answered'; readonly images: ReadonlyMap<string, ImageAnswer> }
  | { readonly kind: 'not asked'; readonly reason: string };

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
  const timeoutSeconds = request.images.some(({ pull }) => pull) ? longSeconds : 600;
  const answer = await ask(host, 'image-files', request, imageFilesAnswerSchema, { timeoutSeconds, say });
  if ('reason' in answer) return { kind: 'not asked', ...answer };
  const { images } = answer.document;
  return { kind: 'answered', images: new Map(images.map((told) => [told.image, told])) };
}

/** Asks the Python of an image whether it takes a source text. */
export async function askToCompile(host: HostConfig, request: CompileRequest): Promise<CompileAnswer> {
  const options = { timeoutSeconds: 600, say: () => undefined };
  const answer = await ask(host, 'compile-python', request, compileAnswerSchema, options);
  return 'reason' in answer ? { kind: 'not asked', ...answer } : answer.document;
}

async function ask<T>(
  host: HostConfig,
  verb: string,
  request: object,
  schema: z.ZodType<T>,
  { timeoutSeconds, say }: { readonly timeoutSeconds: number; readonly say: (text: string) => void },
): Promise<{ readonly document: T } | { readonly reason: string }> {
  const setUp = `run \`pulumi up -s ${host.name}\``;
  try {
    const input = JSON.stringify(request);
    const { exitCode, stdout, stderr } = await runOnHost(host, ifSetUp(host, verb), {
      input,
      timeoutSeconds,
      onStderr: say,
    });
    if (exitCode === agentMissing) return { reason: `${host.name} is not set up: ${setUp}` };
    if (exitCode === agentUsage) {
      return { reason: `${host.name} has another host program than this project: ${setUp}` };
    }
    if (exitCode !== 0) {
      return { reason: `${host.name}: exit code ${exitCode}: ${stderr.trim() || 'no message'}` };
    }
    return { document: schema.parse(JSON.parse(stdout)) };
  } catch (error) {
    if (error instanceof SshFailure) return { reason: error.message };
    if (!(error instanceof SyntaxError || error instanceof z.ZodError)) throw error;
    return { reason: `${host.name} answers in another form: ${setUp}` };
  }
}
