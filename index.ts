import * as pulumi from '@pulumi/pulumi';
import { plannedShape } from './components/planned-shape.ts';
import { configurationOf } from './components/stack-files.ts';
import { ConfigurationError } from './shape/configuration.ts';

/** Builds what the stack's configuration describes: a host, or a shape that a host serves. */
export default async function program(): Promise<object> {
  const folder = process.cwd();
  const stack = pulumi.getStack();
  const config = new pulumi.Config('slot');
  try {
    const file = configurationOf(folder, stack, {
      host: config.getObject('host'),
      shape: config.getObject('shape'),
      hostsFolder: config.get('hostsFolder'),
    });
    if (file.kind === 'host') {
      const { createHost } = await import('./components/host.ts');
      const { host, user, service, agent, agentVersion, podmanVersion, systemdVersion, imageStore } =
        await createHost(file.host, stack);
      return { host, user, service, agent, agentVersion, podmanVersion, systemdVersion, imageStore };
    }
    const planned = plannedShape(folder, stack, file);
    const { serveShape } = await import('./components/serve.ts');
    return (await serveShape(folder, stack, planned)).outputs();
  } catch (error) {
    if (error instanceof ConfigurationError) throw new pulumi.RunError(`\n${error.message}`);
    throw error;
  }
}
