import { isIPv6 } from 'node:net';
import * as z from 'zod';
import { servedNameSchema } from './engines/flag-value.ts';
import { forms } from './forms.ts';
import { byteSizeSchema } from './quantities.ts';
import { absolutePathSchema, isOneLine, nameSchema, nonEmptyLineSchema, serviceNameSchema } from './text.ts';

const portSchema = z
  .int()
  .min(1)
  .max(65535)
  .register(forms, {
    name: 'port',
    limit: 'must be a whole number from 1 to 65535',
    examples: ['7770'],
    fitsAnyMeaning: false,
  });

const notPciAddress = 'must be a PCI address in full and lower case, e.g. 0000:03:00.0';

/** A list of which the second of two equal elements is a mistake. */
function eachOnce<T extends z.ZodType<string>>(element: T) {
  return z.array(element).superRefine((list, context) => {
    for (const [index, item] of list.entries()) {
      if (list.indexOf(item) === index) continue;
      const params = { remedy: 'take it out' };
      context.addIssue({ code: 'custom', path: [index], message: 'must not be there twice', params });
    }
  });
}

const acceptedKeyTypes = ['ssh-ed25519', 'ecdsa-sha2-nistp256', 'ecdsa-sha2-nistp384', 'ecdsa-sha2-nistp521'];

const notHostKey = 'must be a whole public key, "ssh-ed25519 AAAA…" or "ecdsa-sha2-nistp256 AAAA…"';

/** The host's own public key, as a line of `ssh-keyscan` gives it after the address. */
const hostKeySchema = z
  .string()
  .superRefine((key, context) => {
    const [type = '', blob = ''] = key.split(' ');
    const refuse = (message: string): void => context.addIssue({ code: 'custom', message });
    if (type === 'ssh-rsa') {
      refuse('must not be an RSA key: the ssh client of Pulumi offers only SHA-1 for it, which hosts refuse');
    } else if (!acceptedKeyTypes.includes(type) || !holdsKeyOfType(blob, type) || !isOneLine(key)) {
      refuse(notHostKey);
    }
  })
  .register(forms, {
    name: 'public key',
    limit: notHostKey,
    examples: ['ssh-ed25519 AAAA…'],
    pattern: `^(?:${acceptedKeyTypes.join('|')}) [A-Za-z0-9+/]+={0,2}(?: .*)?$`,
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

const notWord = 'must be one word, and not begin with -, which ssh would take for an option';

/** A word of ssh's command line. */
const wordSchema = z
  .string()
  .regex(/^[^\s\p{Cc}-][^\s\p{Cc}]*$/u, notWord)
  .register(forms, { name: 'word', limit: notWord, examples: ['dank'], fitsAnyMeaning: false });

const notAddress = 'must be a DNS name or an IP address alone';

/** Of a machine; login and port have keys of their own. */
const addressSchema = wordSchema
  .superRefine((address, context) => {
    const refuse = (message: string, remedy: string): void =>
      context.addIssue({ code: 'custom', message, params: { remedy } });
    if (isIPv6(address.replace(/%.*$/, ''))) return;
    const [, user, bare = '', port] =
      /^(?:[a-z]+:\/\/)?(?:([^@]*)@)?(\[[^\]]*\]|[^:/@]*)(?::(\d*))?\/?$/i.exec(address) ?? [];
    const name = bare.replaceAll(/[[\]]/g, '');
    if (name === address) return;
    if (name === '') return refuse(notAddress, 'write e.g. 192.0.2.7');
    const parts = [
      `address: ${name}`,
      ...(user ? [`user: ${user.replace(/:.*$/, '')}`] : []),
      ...(port ? [`sshPort: ${port}`] : []),
    ];
    refuse(`${notAddress}: user and port have keys of their own`, `write ${parts.join(', ')}`);
  })
  .register(forms, { name: 'address', limit: notAddress, examples: ['192.0.2.7', 'fd00::7'] });

/** Where and as whom ssh logs in. */
const loginFields = {
  address: addressSchema.describe(
    "DNS name or IP address; an alias of the operator's ssh configuration is not known to Pulumi.",
  ),
  sshPort: portSchema.default(22).describe('Port of sshd.'),
  user: wordSchema.default('dank').describe('An ordinary user with `sudo -n`, or root.'),
  hostKey: hostKeySchema.describe("The host's own public key, checked at every connection."),
};

/** `slot:host` of `Pulumi.<host>.yaml`: what is true of the machine. It holds no secrets. */
export const hostSchema = z.strictObject({
  name: nameSchema.describe('By which the shapes refer to this host: the name of its stack.'),
  ...loginFields,
  privateKeyPath: nonEmptyLineSchema
    .optional()
    .describe("Private key on the operator's machine; without it the agent at SSH_AUTH_SOCK."),
  jumpHost: z
    .strictObject(loginFields)
    .optional()
    .describe('The machine through which ssh reaches the host; without it directly.'),
  service: serviceNameSchema.describe(
    'The one name from which unit, container and all other names are derived.',
  ),
  publicName: servedNameSchema
    .optional()
    .describe('Served by every shape as a second name, so that clients survive a cutover.'),
  port: portSchema.default(7770).describe('Port of the engine.'),
  modelsRoot: absolutePathSchema
    .default('/home/dank/models')
    .describe('Folder to which relative payload and mount paths refer.'),
  stateRoots: eachOnce(absolutePathSchema)
    .default([])
    .describe('Folders below which an engine may write; relative state paths refer to the first.'),
  deviceFiles: eachOnce(absolutePathSchema)
    .default(['/dev/kfd', '/dev/dri'])
    .describe('Device files given to the engine.'),
  gpus: eachOnce(
    z
      .string()
      .regex(/^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/, notPciAddress)
      .register(forms, {
        name: 'PCI address',
        limit: notPciAddress,
        examples: ['0000:03:00.0'],
        remedy: "write it in full and in quotes, e.g. '0000:03:00.0': lspci -D shows it",
      }),
  ).describe('The GPUs that the slot owns; an empty list where there are none.'),
  memoryGate: byteSizeSchema
    .optional()
    .describe('MemAvailable that must be there before an engine starts; without it there is no gate.'),
  gpuArchitecture: nameSchema
    .optional()
    .describe('As the kernel names it, e.g. `gfx1201`; without it rules that need it are silent.')
    .meta({ examples: ['gfx1201'] }),
  gpuMemory: byteSizeSchema
    .optional()
    .describe(
      'Memory of each of the GPUs, e.g. `32 GiB`; without it not known: a host that is asked says it.',
    ),
  integratedGpu: z
    .boolean()
    .optional()
    .describe(
      'Whether the processor has a GPU of its own, which the engine must not take; without it: not known.',
    ),
  selinux: z
    .enum(['enforcing', 'permissive', 'disabled'])
    .optional()
    .describe('Mode of SELinux; without it: not known.'),
  securityOptions: z
    .array(nonEmptyLineSchema)
    .default([])
    .describe("Values of podman's `--security-opt` that this host needs, e.g. `label=disable`."),
});
export type HostConfig = z.infer<typeof hostSchema>;
