/** Test double of the official plugin `docker`: the resources and the behaviour that the project relies on. */
import project from '../../../package.json' with { type: 'json' };
import { serve, type Values } from '../provider.ts';
import { DockerApi } from './dockerApi.ts';
import { type RegistryAuth, registryImage } from './registryImage.ts';
import { remoteImage } from './remoteImage.ts';

let host = '';
let sshOptions: string[] = [];
let registryAuth: RegistryAuth[] = [];

await serve({
  name: 'docker',
  version: project.dependencies['@pulumi/docker'],
  configure(configuration) {
    host = String(configuration.host ?? process.env.DOCKER_HOST ?? '');
    sshOptions = listIn(configuration, 'sshOpts');
    registryAuth = listIn(configuration, 'registryAuth');
  },
  resources: {
    'docker:index/remoteImage:RemoteImage': remoteImage(() => DockerApi.connect(host, sshOptions)),
  },
  functions: {
    'docker:index/getRegistryImage:getRegistryImage': (inputs) => registryImage(inputs, registryAuth),
  },
});

/** The SDK hands lists over as JSON. */
function listIn<Item>(configuration: Values, name: string): Item[] {
  const value = configuration[name];
  return (typeof value === 'string' ? JSON.parse(value) : (value ?? [])) as Item[];
}
