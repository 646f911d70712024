import * as pulumi from '@pulumi/pulumi';
import { ConfigurationError } from '../shape/configuration.ts';
import { plannedShape } from './planned-shape.ts';
import { configurationOf } from './stack-files.ts';

/**
 * Builds what the stack's configuration describes: a host, or a shape that a host serves.
 *
 * @returns the stack's outputs
 */
export async function buildStack(projectFolder: string): Promise<object> {
  const stack = pulumi.getStack();
  const config = new pulumi.Config('slot');
  try {
    const file = configurationOf(projectFolder, stack, {
      host: config.getObject('host'),
      shape: config.getObject('shape'),
      hostsFolder: config.get('hostsFolder'),
    });
    if (file.kind === 'host') {
      const { createHost } = await import('./host.ts');
      const { host, user, service, agent, agentVersion, podmanVersion, systemdVersion, imageStore } =
        await createHost(file.host, stack);
      return { host, user, service, agent, agentVersion, podmanVersion, systemdVersion, imageStore };
    }
    const planned = plannedShape(projectFolder, stack, file);
    const { serveShape } = await import('./serve.ts');
    const secretValues = config.getSecretObject<Record<string, string>>('secrets');
    return (await serveShape(projectFolder, stack, planned, secretValues)).outputs();
  } catch (error) {
    // A problem of the configuration is told to the operator as it is, without a stack trace.
    if (error instanceof ConfigurationError)
      throw new pulumi.RunError(`to correct in the configuration:\n${error.message}`);
    throw error;
  }
}
