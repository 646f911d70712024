import { hostSchema } from '../host.ts';
import type { Verdict } from './rule.ts';

/** How Pulumi reaches a host, as a resource is told. */
export interface Connection {
  readonly host: string;
  readonly hostKey: string | undefined;
}

/** A rule that judges a connection: a shape cannot be excepted from it. */
export interface ConnectionRule extends Verdict {
  examine(connection: Connection): string | undefined;
}

export const sshHostKey: ConnectionRule = {
  id: 'ssh-host-key',
  severity: 'refuse',
  reason: 'without the key of the host whoever answers at its address gets the commands and the manifest',
  evidence:
    "Pulumi's command provider checks a host key only where one is set, and knows no RSA key (measured)",
  remedy: 'set slot:host.hostKey to what ssh-keyscan -t ed25519 gives, and compare it at the host',
  examine: ({ host, hostKey = '' }) => {
    if (hostKey.trim() === '') return `no host key for ${host}`;
    return hostSchema.shape.hostKey.safeParse(hostKey).success
      ? undefined
      : `${hostKey.split(' ')[0]} is no key of ${host} that can be checked`;
  },
};

export const connectionRules: readonly ConnectionRule[] = [sshHostKey];
