import { remote } from '@pulumi/command';
import * as pulumi from '@pulumi/pulumi';
import { asRoot, type SshTarget } from '../remote/ssh.ts';
import { type Outcome, outcomeSchema } from '../shape/inspection.ts';
import { slotProgram } from '../shape/names.ts';
import { type Claim, type Release, sha256, shortId } from '../shape/release.ts';
import { connectionOf } from './connection.ts';
import { manifestText } from './intent.ts';

export interface CutoverArgs {
  readonly host: SshTarget;
  readonly release: Release;
  /** Who wants the slot and what was seen of it: a host whose epoch has moved since refuses. */
  readonly claim: Claim;
}

/**
 * The transaction on the host that makes the release the slot's occupant: after it either the release serves
 * and is proved to, or what served before does. A destroy empties the slot only if this claim holds it.
 */
export class Cutover extends pulumi.ComponentResource {
  /** How the last transaction of this resource ended; always `serving`, every other end fails the update. */
  readonly outcome: pulumi.Output<Outcome>;

  constructor(
    name: string,
    { host, release, claim }: CutoverArgs,
    options: pulumi.ComponentResourceOptions = {},
  ) {
    super('slot:shape:Cutover', name, {}, options);
    const cutover = asRoot(host.user, `${slotProgram} cutover`);
    const owner = shortId(sha256(claim.token));
    const transaction = new remote.Command(
      `${name}-transaction`,
      {
        connection: connectionOf(host),
        create: cutover,
        update: cutover,
        delete: asRoot(
          host.user,
          `${slotProgram} vacate --service ${release.service} --shape ${release.shape} --claim ${owner}`,
        ),
        stdin: manifestText(claim, release),
        // The previous run's output would need AcceptEnv on the host, and a warning says so each time.
        addPreviousOutputInEnv: false,
        // Progress is on stderr; stdout is the outcome, a document for programs.
        logging: remote.Logging.Stderr,
      },
      { parent: this, ...(options.dependsOn && { dependsOn: options.dependsOn }) },
    );
    this.outcome = transaction.stdout.apply((text) => outcomeSchema.parse(JSON.parse(text)));
    this.registerOutputs({ outcome: this.outcome });
  }
}
