import * as docker from '@pulumi/docker';
import * as pulumi from '@pulumi/pulumi';
import { privateKeyFile, type SshEndpoint, type SshTarget, shellWord } from '../remote/ssh.ts';

export interface EngineImageArgs {
  /** Host whose image store gets the image: root's, by the `docker` shim that the host stack installs. */
  readonly host: SshTarget;
  /** `registry/name@sha256:…`; a tag alone does not say which image. */
  readonly image: string;
}

/** The engine's image in the host's store. Neither another shape nor a destroy takes it away: rollback needs it. */
export class EngineImage extends pulumi.ComponentResource {
  /** The image as pinned, `registry/name@sha256:…`. */
  readonly image: pulumi.Output<string>;

  constructor(name: string, { host, image }: EngineImageArgs, options?: pulumi.ComponentResourceOptions) {
    super('slot:shape:EngineImage', name, {}, options);
    const store = new docker.Provider(
      `${name}-store`,
      { host: `ssh://${host.user}@${bracketed(host.address)}:${host.sshPort}`, sshOpts: sshOptionsOf(host) },
      { parent: this },
    );
    const pulled = new docker.RemoteImage(
      `${name}-pull`,
      { name: image, keepLocally: true },
      {
        parent: this,
        provider: store,
        // A dead host must not stand in the way of a destroy.
        retainOnDelete: true,
        // Of the order of 20 GiB; the provider's own limit is 20 minutes.
        customTimeouts: { create: '6h', update: '6h' },
      },
    );
    this.image = pulled.name;
    this.registerOutputs({ image: this.image });
  }
}

/**
 * For the provider's own call of `ssh`: the same pinned keys and login as `remote/ssh.ts`, in options alone. A
 * file of known hosts would put a path of one operator's machine into the state.
 */
export function sshOptionsOf(host: SshTarget): string[] {
  return [
    ...loginOptions(host, 'slot-target', host.privateKeyPath),
    ...(host.jumpHost ? through(host, host.jumpHost) : []),
  ];
}

function through(host: SshTarget, jump: SshEndpoint): string[] {
  const command = [
    'ssh',
    ...loginOptions(jump, 'slot-jump', host.privateKeyPath),
    '-p',
    String(jump.sshPort),
    '-l',
    jump.user,
    '-W',
    `${bracketed(host.address)}:${host.sshPort}`,
    jump.address,
  ];
  // ssh replaces its percent tokens before a shell reads the text.
  return ['-o', `ProxyCommand=exec ${command.map(shellWord).join(' ').replaceAll('%', '%%')}`];
}

function loginOptions(endpoint: SshEndpoint, alias: string, privateKeyPath: string | undefined): string[] {
  const options = {
    BatchMode: 'yes',
    StrictHostKeyChecking: 'yes',
    HostKeyAlias: alias,
    HostKeyAlgorithms: endpoint.hostKey.split(' ')[0] ?? '',
    KnownHostsCommand: `/usr/bin/env echo ${alias} ${endpoint.hostKey}`,
    UserKnownHostsFile: '/dev/null',
    GlobalKnownHostsFile: '/dev/null',
    CheckHostIP: 'no',
    UpdateHostKeys: 'no',
    PreferredAuthentications: 'publickey',
    ...(privateKeyPath === undefined
      ? {}
      : {
          IdentitiesOnly: 'yes',
          IdentityAgent: 'none',
          IdentityFile: `"${privateKeyFile(privateKeyPath).replaceAll('%', '%%')}"`,
        }),
  };
  return ['-F', 'none', ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])];
}

export function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}
