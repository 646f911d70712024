import * as pulumi from '@pulumi/pulumi';
import { namesOf } from '../shape/names.ts';
import type { Release } from '../shape/release.ts';

export type EngineUnitArgs = Pick<Release, 'service' | 'container' | 'unit' | 'target' | 'engineIdentity'>;

/** The systemd unit that runs the engine. The cutover installs it; here it can be read, and compared by Pulumi. */
export class EngineUnit extends pulumi.ComponentResource {
  /** Name of the unit, e.g. `frank-archon.service`. */
  readonly unit: pulumi.Output<string>;
  /** Name of the engine's container, for `podman logs` and the like. */
  readonly container: pulumi.Output<string>;
  /** The unit's text. */
  readonly text: pulumi.Output<string>;
  /** Text of the target that pulls the engine in at boot. */
  readonly target: pulumi.Output<string>;
  /** Hash of all that the engine gets, 64 hex digits: equal identities are one engine, so no outage. */
  readonly engineIdentity: pulumi.Output<string>;

  constructor(name: string, args: EngineUnitArgs, options?: pulumi.ComponentResourceOptions) {
    super('slot:shape:EngineUnit', name, {}, options);
    const { container, unit: text, target, engineIdentity } = args;
    const { unit } = namesOf(args.service);
    this.unit = pulumi.output(unit);
    this.container = pulumi.output(container);
    this.text = pulumi.output(text);
    this.target = pulumi.output(target);
    this.engineIdentity = pulumi.output(engineIdentity);
    this.registerOutputs({ unit, container, text, target, engineIdentity });
  }
}
