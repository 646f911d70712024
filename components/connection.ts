import { readFileSync } from 'node:fs';
import type { types } from '@pulumi/command';
import { RunError } from '@pulumi/pulumi';
import { privateKeyFile, type SshEndpoint, type SshTarget } from '../remote/ssh.ts';

/**
 * The same machine, login and pinned keys as `remote/ssh.ts` reaches, for resources of Pulumi's command
 * provider. A configured private key is read here and kept as a secret in the state; the socket of an ssh
 * agent is not named, so that it does not turn up as a change with every login of an operator.
 * @throws when the configured private key cannot be read
 */
export function connectionOf(target: SshTarget): types.input.remote.ConnectionArgs {
  const privateKey = target.privateKeyPath === undefined ? undefined : privateKeyAt(target.privateKeyPath);
  return {
    ...endpointOf(target, privateKey),
    ...(target.jumpHost === undefined ? {} : { proxy: endpointOf(target.jumpHost, privateKey) }),
  };
}

function endpointOf(endpoint: SshEndpoint, privateKey: string | undefined) {
  return {
    host: endpoint.address,
    port: endpoint.sshPort,
    user: endpoint.user,
    hostKey: endpoint.hostKey,
    dialErrorLimit: 5,
    perDialTimeout: 10,
    ...(privateKey === undefined ? {} : { privateKey }),
  };
}

function privateKeyAt(path: string): string {
  try {
    return readFileSync(privateKeyFile(path), 'utf8');
  } catch (error) {
    throw new RunError(
      `privateKeyPath ${path}: ${(error as Error).message}; leave it out to use the ssh agent's keys`,
    );
  }
}
