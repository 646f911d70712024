import * as pulumi from '@pulumi/pulumi';
import type { Release } from '../shape/release.ts';

export type PayloadArgs = Release['payload'];

/** A model folder that lies on the host: verified there, mounted read-only, never written, never deleted. */
export class Payload extends pulumi.ComponentResource {
  /** Absolute path on the host. */
  readonly folder: pulumi.Output<string>;
  /** File below the folder that the engine is pointed at; undefined: the folder itself. */
  readonly entry: pulumi.Output<string | undefined>;

  constructor(name: string, { folder, entry }: PayloadArgs, options?: pulumi.ComponentResourceOptions) {
    super('slot:shape:Payload', name, {}, options);
    this.folder = pulumi.output(folder);
    this.entry = pulumi.output(entry);
    this.registerOutputs({ folder, entry });
  }
}
