import { describe, expect, it } from 'vitest';
import {
  asRoot,
  failureIn,
  fingerprintOf,
  knownHostsOf,
  type SshTarget,
  shellWord,
  sshArguments,
} from '../../../remote/ssh.ts';

const hostKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFWk4O2Ev9x5nDnAKYD/lmgKg7hWTAAjyKDxyxqGB1Yz';
const jumpKey = 'ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBKQ=';
const target: SshTarget = {
  address: '192.0.2.7',
  sshPort: 2222,
  user: 'dank',
  hostKey,
  privateKeyPath: '/keys/my key',
};
const jumpHost = { address: 'bastion.example', sshPort: 22, user: 'hop', hostKey: jumpKey };
const files = { knownHosts: '/tmp/x/known_hosts', log: '/tmp/x/log', jumpLog: '/tmp/x/jump-log' };

function seen(log: string, jumpLog = '', timedOutAfter?: number) {
  return { log, jumpLog, timedOutAfter };
}

describe('arguments for ssh', () => {
  it('accept no other host key than the configured one, of its own type', () => {
    const args = sshArguments(target, 'true', files);
    expect(args).toContain('StrictHostKeyChecking=yes');
    expect(args).toContain('HostKeyAlgorithms=ssh-ed25519');
    expect(args).toContain('UserKnownHostsFile="/tmp/x/known_hosts"');
    expect(args).toContain('GlobalKnownHostsFile=/dev/null');
    expect(knownHostsOf(target)).toBe(`slot-target ${hostKey}\n`);
  });

  it('read no configuration of the operator, which Pulumi would not read either', () => {
    const args = sshArguments(target, 'true', files);
    expect(args.slice(0, 2)).toEqual(['-F', 'none']);
  });

  it('never ask a question', () => {
    expect(sshArguments(target, 'true', files)).toContain('BatchMode=yes');
  });

  it('offer the configured key alone', () => {
    const args = sshArguments(target, 'true', files);
    expect(args).toContain('IdentityFile="/keys/my key"');
    expect(args).toContain('IdentitiesOnly=yes');
    expect(args).toContain('IdentityAgent=none');
  });

  it('offer the agent’s keys and no default key file where no path is configured', () => {
    const args = sshArguments({ ...target, privateKeyPath: undefined }, 'true', files);
    expect(args).toContain('IdentityFile=none');
    expect(args).not.toContain('IdentityAgent=none');
  });

  it('pass the command as one argument behind the address', () => {
    expect(sshArguments(target, 'echo "a  b" $HOME', files).slice(-3)).toEqual([
      '--',
      '192.0.2.7',
      'echo "a  b" $HOME',
    ]);
  });

  it('pin the jump host’s own key beside the target’s', () => {
    const through = { ...target, jumpHost };
    expect(knownHostsOf(through)).toBe(`slot-target ${hostKey}\nslot-jump ${jumpKey}\n`);
    const proxy = sshArguments(through, 'true', files).find((word) => word.startsWith('ProxyCommand='));
    expect(proxy).toContain('HostKeyAlias=slot-jump');
    expect(proxy).toContain('HostKeyAlgorithms=ecdsa-sha2-nistp256');
    expect(proxy).toContain("-l hop -W '[192.0.2.7]:2222' bastion.example");
  });

  it('reach an IPv6 target through a jump host', () => {
    const through = { ...target, address: '2001:db8::7', jumpHost };
    const proxy = sshArguments(through, 'true', files).find((word) => word.startsWith('ProxyCommand='));
    expect(proxy).toContain("-W '[2001:db8::7]:2222'");
  });

  it('survive the shell and the percent tokens of a proxy command', () => {
    const through = { ...target, jumpHost, privateKeyPath: "/k/it's 100%" };
    const proxy = sshArguments(through, 'true', files).find((word) => word.startsWith('ProxyCommand='));
    expect(proxy).toContain(`'IdentityFile="/k/it'\\''s 100%%%%"'`);
  });
});

describe('what ssh’s log means', () => {
  it('takes an exit status of the command for a result, 255 too', () => {
    expect(
      failureIn(target, seen('Authenticated to 192.0.2.7\ndebug1: Exit status 255\r\n')),
    ).toBeUndefined();
  });

  it('shows both fingerprints of a changed host key', () => {
    const failure = failureIn(
      target,
      seen(
        'debug1: Server host key: ssh-ed25519 SHA256:w/XX1rjrCykaoWGzxv6eBExD+9f0GdswjEO2skGeiGE\r\nHost key verification failed.\r\n',
      ),
    );
    expect(failure?.kind).toBe('host-key');
    expect(failure?.message).toContain(fingerprintOf(hostKey));
    expect(failure?.message).toContain('SHA256:w/XX1rjrCykaoWGzxv6eBExD+9f0GdswjEO2skGeiGE');
    expect(failure?.message).toContain('nothing was sent');
  });

  it('takes a host without a key of the configured type for one with a changed key', () => {
    const failure = failureIn(
      target,
      seen(
        'Unable to negotiate with 192.0.2.7 port 22: no matching host key type found. Their offer: rsa-sha2-512',
      ),
    );
    expect(failure?.kind).toBe('host-key');
    expect(failure?.message).toContain('no ssh-ed25519 key (rsa-sha2-512)');
  });

  it('names the jump host when it is the one with another key', () => {
    const failure = failureIn(
      { ...target, jumpHost },
      seen(
        'Connection closed by UNKNOWN port 65535',
        'debug1: Server host key: ecdsa-sha2-nistp256 SHA256:abc\nHost key verification failed.',
      ),
    );
    expect(failure?.kind).toBe('host-key');
    expect(failure?.message).toMatch(/^jump host hop@bastion\.example:22/);
  });

  it('does not show the jump host’s key as the target’s', () => {
    const failure = failureIn(
      { ...target, jumpHost },
      seen(
        'debug1: Server host key: ssh-ed25519 SHA256:target\nHost key verification failed.',
        'debug1: Server host key: ecdsa-sha2-nistp256 SHA256:jump\nAuthenticated to bastion.example',
      ),
    );
    expect(failure?.message).toContain('SHA256:target');
    expect(failure?.message).not.toContain('SHA256:jump');
  });

  it('says which key was refused', () => {
    const failure = failureIn(target, seen('dank@192.0.2.7: Permission denied (publickey).'));
    expect(failure?.kind).toBe('permission');
    expect(failure?.message).toContain('/keys/my key');
  });

  it('points to the agent when its keys were refused', () => {
    const failure = failureIn(
      { ...target, privateKeyPath: undefined },
      seen('dank@192.0.2.7: Permission denied (publickey).'),
    );
    expect(failure?.message).toContain('ssh-add -l');
  });

  it('explains an alias that is no host name', () => {
    const failure = failureIn(
      { ...target, address: 'gpu' },
      seen('ssh: Could not resolve hostname gpu: Name or service not known'),
    );
    expect(failure?.kind).toBe('unreachable');
    expect(failure?.message).toContain('`ssh -G gpu`');
  });

  it('gives ssh’s own reason for a host that is not there', () => {
    const failure = failureIn(
      target,
      seen('debug1: x\nssh: connect to host 192.0.2.7 port 2222: Connection refused\r\n'),
    );
    expect(failure?.kind).toBe('unreachable');
    expect(failure?.message).toContain('Connection refused');
  });

  it('gives the jump host’s reason for a target that it cannot reach', () => {
    const failure = failureIn(
      { ...target, jumpHost },
      seen(
        'Connection closed by UNKNOWN port 65535',
        'Authenticated to bastion.example\nchannel 0: open failed: connect failed: No route to host\nstdio forwarding failed',
      ),
    );
    expect(failure?.message).toContain('No route to host');
  });

  it('never calls a command that may have run unreachable', () => {
    const failure = failureIn(target, seen('Authenticated to 192.0.2.7\ndebug1: Exit status -1'));
    expect(failure?.kind).toBe('lost');
  });

  it('tells a command that does not end from a host that does not answer', () => {
    expect(failureIn(target, seen('Authenticated to 192.0.2.7', '', 30))?.kind).toBe('lost');
    expect(failureIn(target, seen('debug1: Connecting to 192.0.2.7', '', 30))?.kind).toBe('unreachable');
  });
});

describe('words for the host’s shell', () => {
  it('keep quotes, dollars and line breaks as they are', () => {
    expect(shellWord(`it's $HOME\n`)).toBe(`'it'\\''s $HOME\n'`);
    expect(shellWord('')).toBe("''");
  });

  it('go through sudo, which never asks, except for root', () => {
    expect(asRoot('dank', 'systemctl cat x')).toBe('sudo -n systemctl cat x');
    expect(asRoot('root', 'systemctl cat x')).toBe('systemctl cat x');
  });
});
