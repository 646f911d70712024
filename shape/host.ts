import * as z from 'zod';
import { byteSizeSchema } from './quantities.ts';
import { absolutePathSchema, nameSchema, nonEmptyLineSchema } from './text.ts';

const portSchema = z.int().min(1).max(65535);

const acceptedKeyTypes = ['ssh-ed25519', 'ecdsa-sha2-nistp256', 'ecdsa-sha2-nistp384', 'ecdsa-sha2-nistp521'];

/** The host's own public key, as a line of `ssh-keyscan` gives it after the address. */
const hostKeySchema = z.string().superRefine((key, context) => {
  const [type = '', blob = ''] = key.split(' ');
  if (type === 'ssh-rsa') {
    context.addIssue({
      code: 'custom',
      message:
        'must not be an RSA key: the ssh client of Pulumi offers only SHA-1 for it, which hosts refuse',
      params: { operatorSupplied: true },
    });
  } else if (!acceptedKeyTypes.includes(type) || !holdsKeyOfType(blob, type)) {
    context.addIssue({
      code: 'custom',
      message: 'must be a whole public key, "ssh-ed25519 AAAA…" or "ecdsa-sha2-nistp256 AAAA…"',
      params: { operatorSupplied: true },
    });
  }
});

/** A public key's blob begins with the length and the name of its own type: a copy error shows here. */
function holdsKeyOfType(blob: string, type: string): boolean {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(blob)) return false;
  const bytes = Buffer.from(blob, 'base64');
  const field = Buffer.from(type);
  return (
    bytes.length >= 4 + field.length + 4 + 32 &&
    bytes.readUInt32BE(0) === field.length &&
    bytes.subarray(4, 4 + field.length).equals(field)
  );
}

/** Where and as whom ssh logs in. */
const loginFields = {
  /** DNS name or IP address; an alias of the operator's ssh configuration is not known to Pulumi. */
  address: nonEmptyLineSchema,
  /** Default 22. */
  sshPort: portSchema.default(22),
  /** An ordinary user with `sudo -n`, or root; default `dank`. */
  user: nonEmptyLineSchema.default('dank'),
  hostKey: hostKeySchema,
};

/** `slot:host` of `Pulumi.<host>.yaml`: what is true of the machine. It holds no secrets. */
export const hostSchema = z.strictObject({
  /** By which the shapes refer to this host: the name of its stack. */
  name: nameSchema,
  ...loginFields,
  /** Private key on the operator's machine; default: the agent at SSH_AUTH_SOCK. */
  privateKeyPath: nonEmptyLineSchema.optional(),
  jumpHost: z.strictObject(loginFields).optional(),
  /** The one name from which unit, container and all other names are derived. */
  service: nameSchema,
  /** Served by every shape as a second name, so that clients survive a cutover; default: none. */
  publicName: nonEmptyLineSchema.optional(),
  /** Port of the engine; default 7770. */
  port: portSchema.default(7770),
  /** Folder to which relative payload and mount paths refer; default `/home/dank/models`. */
  modelsRoot: absolutePathSchema.default('/home/dank/models'),
  /** Folders below which an engine may write; relative state paths refer to the first; default none. */
  stateRoots: z.array(absolutePathSchema).default([]),
  /** Device files given to the engine; default `/dev/kfd` and `/dev/dri`. */
  deviceFiles: z.array(absolutePathSchema).default(['/dev/kfd', '/dev/dri']),
  /** PCI addresses of the GPUs that the slot owns; an empty list where there are none. */
  gpus: z.array(
    z.string().regex(/^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/, {
      error: 'must be a PCI address in full and lower case, e.g. 0000:03:00.0',
    }),
  ),
  /** MemAvailable that must be there before an engine starts; default: no gate. */
  memoryGate: byteSizeSchema.optional(),
  /** As the kernel names it, e.g. `gfx1201`; default: not known. */
  gpuArchitecture: nameSchema.optional(),
  /** Whether the processor has a GPU of its own, which the engine must not take; default: not known. */
  integratedGpu: z.boolean().optional(),
  /** Default: not known. */
  selinux: z.enum(['enforcing', 'permissive', 'disabled']).optional(),
  /** Values of podman's `--security-opt` that this host needs, e.g. `label=disable`; default none. */
  securityOptions: z.array(nonEmptyLineSchema).default([]),
});
export type HostConfig = z.infer<typeof hostSchema>;
