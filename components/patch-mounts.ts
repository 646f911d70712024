import * as pulumi from '@pulumi/pulumi';
import type { Release } from '../shape/release.ts';

export interface PatchMountsArgs {
  readonly patches: Release['patches'];
}

/** A file of the image that the engine finds replaced. */
export interface PatchMount {
  /** Absolute path inside the image. */
  readonly target: string;
  /** Of the file that is mounted over it. */
  readonly patchedSha256: string;
  /** Names of the diffs that made it, in the order in which they apply. */
  readonly diffs: readonly string[];
}

/** The patched files of the image; the host makes them of the image's own and mounts them read-only. */
export class PatchMounts extends pulumi.ComponentResource {
  readonly mounts: pulumi.Output<readonly PatchMount[]>;

  constructor(name: string, { patches }: PatchMountsArgs, options?: pulumi.ComponentResourceOptions) {
    super('slot:shape:PatchMounts', name, {}, options);
    const mounts = patches.map(({ target, patchedSha256, diffs }) => ({
      target,
      patchedSha256,
      diffs: diffs.map((diff) => diff.name),
    }));
    this.mounts = pulumi.output(mounts);
    this.registerOutputs({ mounts });
  }
}
