import * as pulumi from '@pulumi/pulumi';
import { ConfigurationError } from '../shape/configuration.ts';
import { plannedStack } from './planned-shape.ts';

/**
 * Builds what the stack's configuration describes: a host, or a shape that a host serves.
 *
 * @returns the stack's outputs
 */
export async function buildStack(projectFolder: string): Promise<object> {
  const stack = pulumi.getStack();
  try {
    const planned = plannedStack(projectFolder, stack, {
      values: pulumi.runtime.allConfig(),
      // The SDK says it to nobody; the language host sets it beside the values.
      secretKeys: JSON.parse(process.env.PULUMI_CONFIG_SECRET_KEYS ?? '[]') as readonly string[],
    });
    if (planned.kind === 'host') {
      const { createHost } = await import('./host.ts');
      const { host, user, service, agent, agentVersion, podmanVersion, systemdVersion, imageStore } =
        await createHost(planned.host, stack);
      return { host, user, service, agent, agentVersion, podmanVersion, systemdVersion, imageStore };
    }
    const { serveShape } = await import('./serve.ts');
    const secretValues = new pulumi.Config('slot').getSecretObject<Record<string, string>>('secrets');
    return (await serveShape(projectFolder, stack, planned, secretValues)).outputs();
  } catch (error) {
    // A problem of the configuration is told to the operator as it is, without a stack trace.
    if (error instanceof ConfigurationError)
      throw new pulumi.RunError(`to correct in the configuration:\n${error.message}`);
    throw error;
  }
}
