/** A throw-away real host: what the demo, the end-to-end tests and the bench need of it, whatever it is made of. */
export interface LabHost {
  /** `nspawn`: a systemd-nspawn container on this kernel. `vm`: a QEMU machine with a kernel of its own. */
  readonly kind: LabKind;
  /** Unique among the labs running on this machine, e.g. `lab-0`. */
  readonly name: string;
  /** Where sshd answers for the operator's side. */
  readonly address: string;
  readonly sshPort: number;
  /** The login: an ordinary user with `sudo -n`; root login is refused. */
  readonly user: string;
  /** Path of the private key (ed25519, no passphrase) that the login accepts. */
  readonly privateKeyPath: string;
  /** The host's own public key, `ssh-ed25519 AAAA…`, as Pulumi's `hostKey` wants it. */
  readonly hostKey: string;
  /** Base URL under which the host's port 7770 is reached from this machine, e.g. `http://10.77.0.2:7770`. */
  readonly engineUrl: string;
  /** Runs a command on the host as the login; never throws on a non-zero exit. */
  ssh(command: string, options?: LabCommandOptions): Promise<LabCommandResult>;
  /** An orderly reboot; resolves when sshd answers again. */
  reboot(): Promise<void>;
  /** Stops the host without any warning to its programs (vm: power cut; nspawn: SIGKILL to all) and boots it again. */
  cutPower(): Promise<void>;
  /** Ends the host and removes everything that was started or written for it. */
  down(): Promise<void>;
}

export type LabKind = 'nspawn' | 'vm';

export interface LabCommandOptions {
  /** Run through `sudo -n`. */
  readonly root?: boolean;
  /** Text for standard input; default none (/dev/null). */
  readonly input?: string;
}

export interface LabCommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}
