import { remote } from '@pulumi/command';
import * as pulumi from '@pulumi/pulumi';
import { asRoot, type SshTarget } from '../remote/ssh.ts';
import { slotProgram } from '../shape/names.ts';
import type { Release } from '../shape/release.ts';
import { connectionOf } from './connection.ts';

export interface EngineSecretsArgs {
  readonly host: SshTarget;
  readonly secrets: Release['secrets'];
  /** By variable, of `slot:secrets`. */
  readonly values: pulumi.Input<Readonly<Record<string, string>>>;
}

/**
 * The values of a shape's secret variables in podman's store on the host, each by a command of its own: a secret
 * in the cutover's input would hide its whole difference. They stay on the host, where a rollback needs them.
 */
export class EngineSecrets extends pulumi.ComponentResource {
  constructor(
    name: string,
    { host, secrets, values }: EngineSecretsArgs,
    options?: pulumi.ComponentResourceOptions,
  ) {
    super('slot:shape:EngineSecrets', name, {}, options);
    for (const secret of secrets) {
      const put = asRoot(host.user, `${slotProgram} secret --name ${secret.name}`);
      new remote.Command(
        `${name}-${secret.variable}`,
        {
          connection: connectionOf(host),
          create: put,
          update: put,
          stdin: pulumi.secret(pulumi.output(values).apply((all) => secretValueOf(all, secret.variable))),
          addPreviousOutputInEnv: false,
          logging: remote.Logging.None,
        },
        { parent: this },
      );
    }
    this.registerOutputs({});
  }
}

function secretValueOf(values: Readonly<Record<string, unknown>>, variable: string): string {
  const value = values[variable];
  if (typeof value === 'string' && value !== '') return value;
  throw new pulumi.RunError(
    `slot:secrets.${variable}: ${value === undefined ? 'is missing' : 'must be text'}, the shape names it; ` +
      `pulumi config set --secret --path slot:secrets.${variable}`,
  );
}
