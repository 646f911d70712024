import { z } from 'zod';
import type { HostConfig } from '../shape/host.ts';
import { type Inspection, inspectionSchema } from '../shape/inspection.ts';
import { jsonOrUndefined } from '../shape/json.ts';
import { slotProgram } from '../shape/names.ts';
import type { Release } from '../shape/release.ts';
import { asRoot, runOnHost, SshFailure, type SshTarget } from './ssh.ts';

export type InspectedHost = SshTarget & Pick<HostConfig, 'name' | 'service'>;

export type InspectAnswer =
  | { readonly kind: 'inspected'; readonly inspection: Inspection }
  | { readonly kind: 'unreachable'; readonly failure: SshFailure }
  /** The host stack has to run first, which `message` says with the command. */
  | { readonly kind: 'not-set-up'; readonly message: string };

/** Not an exit code of the agent, of sudo or of a shell. */
export const agentMissing = 93;

/** Command line of the host's program; it ends with `agentMissing` where the host stack has not run yet. */
export function ifSetUp(host: Pick<SshTarget, 'user'>, verb: string): string {
  const program = asRoot(host.user, `${slotProgram} ${verb}`);
  return `sh -c 'test -e ${slotProgram} || exit ${agentMissing}; exec ${program}'`;
}

/**
 * Asks the host who holds the slot and whether `release` could take it. One connection, nothing written there.
 * @throws when the host's program fails for another reason than those of InspectAnswer
 */
export async function inspectHost(host: InspectedHost, release: Release | undefined): Promise<InspectAnswer> {
  const command = ifSetUp(host, 'inspect');
  const input = JSON.stringify({ service: host.service, release });
  let answer: Awaited<ReturnType<typeof runOnHost>>;
  try {
    answer = await runOnHost(host, command, { input, timeoutSeconds: 30 });
  } catch (error) {
    if (error instanceof SshFailure) return { kind: 'unreachable', failure: error };
    throw error;
  }
  if (answer.exitCode === agentMissing) {
    return {
      kind: 'not-set-up',
      message: `${host.name} is not set up: run \`pulumi up -s ${host.name}\` first`,
    };
  }
  if (answer.exitCode !== 0) {
    throw new Error(
      `${host.name}: \`slot inspect\` ended with exit code ${answer.exitCode}: ${answer.stderr.trim() || 'no message'}`,
    );
  }
  return answerOf(host, answer.stdout);
}

export function answerOf(host: Pick<InspectedHost, 'name'>, answer: string): InspectAnswer {
  const document = jsonOrUndefined(answer);
  const parsed = inspectionSchema.safeParse(document);
  if (parsed.success) return { kind: 'inspected', inspection: parsed.data };
  const agent = z.object({ agent: z.string() }).safeParse(document).data?.agent ?? 'of unknown version';
  return {
    kind: 'not-set-up',
    message:
      `${host.name}: its agent ${agent} answers in another form than this checkout expects ` +
      `(${z.prettifyError(parsed.error).split('\n').slice(0, 2).join(' ')}): ` +
      `bring both to the same version with \`pulumi up -s ${host.name}\``,
  };
}
