import * as pulumi from '@pulumi/pulumi';
import type { HostConfig } from '../shape/host.ts';
import type { Outcome } from '../shape/inspection.ts';
import type { Figure } from '../shape/memory/figure.ts';
import { memoryPlanOf } from '../shape/memory/plan.ts';
import { type Claim, type Release, releaseIdOf } from '../shape/release.ts';
import { Cutover } from './cutover.ts';
import { bracketed, EngineImage } from './engine-image.ts';
import { EngineSecrets } from './engine-secrets.ts';
import { EngineUnit } from './engine-unit.ts';
import { PatchMounts } from './patch-mounts.ts';
import { Payload } from './payload.ts';

export interface ServedShapeArgs {
  /** The machine with the slot. Plain values: what a preview says of the host it must know before it runs. */
  readonly host: HostConfig;
  /** The rendered shape, of `planRelease`. */
  readonly release: Release;
  /** Of `intentOf`: it decides whether Pulumi sees something to do. */
  readonly claim: Claim;
  /** Values of the release's secrets, by variable; default none. */
  readonly secretValues?: pulumi.Input<Readonly<Record<string, string>>>;
}

/**
 * A shape that holds the slot of a host: image, payload, patches and unit, and the cutover that makes it serve.
 * Of several on one host the last one brought up serves; the others' releases stay there for a rollback.
 */
export class ServedShape extends pulumi.ComponentResource {
  /** Base URL of the OpenAI-compatible endpoint, e.g. `http://10.0.0.5:7770`. */
  readonly endpoint: pulumi.Output<string>;
  /** Model name that responses carry. */
  readonly servedName: pulumi.Output<string>;
  /** Name that every shape of this host serves as well; undefined: the host sets none. */
  readonly publicName: pulumi.Output<string | undefined>;
  /** Name of the systemd unit, e.g. `frank-archon.service`. */
  readonly unit: pulumi.Output<string>;
  /** Content address of the release, 64 hex digits. */
  readonly releaseId: pulumi.Output<string>;
  /** Hash of all that the engine gets, 64 hex digits. */
  readonly engineIdentity: pulumi.Output<string>;
  /** Address of the host, in plain text: Pulumi shows a connection as a secret. */
  readonly host: pulumi.Output<string>;
  /** Login on the host, in plain text. */
  readonly user: pulumi.Output<string>;
  /** How the cutover ended. */
  readonly outcome: pulumi.Output<Outcome>;
  /**
   * The memory plan: by the record alone, as a host's free memory is another one with every run. A figure's `amount`
   * is in bytes or a count, or says that it is not known.
   */
  readonly memory: pulumi.Output<readonly Figure[]>;

  constructor(name: string, args: ServedShapeArgs, options?: pulumi.ComponentResourceOptions) {
    super('slot:shape:ServedShape', name, {}, options);
    const { host, release, claim, secretValues = {} } = args;
    const part = { parent: this };
    const image = new EngineImage(`${name}-image`, { host, image: release.image }, part);
    new Payload(`${name}-payload`, release.payload, part);
    if (release.patches.length > 0) new PatchMounts(`${name}-patches`, { patches: release.patches }, part);
    const needed: pulumi.Resource[] = [image];
    if (release.secrets.length > 0) {
      const { secrets } = release;
      needed.push(new EngineSecrets(`${name}-secrets`, { host, secrets, values: secretValues }, part));
    }
    const unit = new EngineUnit(`${name}-unit`, release, part);
    const cutover = new Cutover(`${name}-cutover`, { host, release, claim }, { ...part, dependsOn: needed });

    this.endpoint = pulumi.output(`http://${bracketed(host.address)}:${release.port}`);
    this.servedName = pulumi.output(release.servedNames[0] ?? release.shape);
    this.publicName = pulumi.output(host.publicName);
    this.unit = unit.unit;
    this.releaseId = pulumi.output(releaseIdOf(release));
    this.engineIdentity = unit.engineIdentity;
    this.host = pulumi.output(host.address);
    this.user = pulumi.output(host.user);
    this.outcome = cutover.outcome;
    this.memory = pulumi.output(memoryPlanOf(release).figures);
    this.registerOutputs(this.outputs());
  }

  /** What a stack that serves this shape exports. */
  outputs() {
    const { endpoint, servedName, publicName, unit, releaseId, engineIdentity, host, user, outcome } = this;
    const { memory } = this;
    return { endpoint, servedName, publicName, unit, releaseId, engineIdentity, host, user, outcome, memory };
  }
}
