import { type Outside, realOutside } from '../../../../agent/outside.ts';
import { type Extent, quickLook } from '../../../../agent/payload/extent.ts';
import { type Inventory, inventoryOf } from '../../../../agent/payload/inventory.ts';
import type { ExpectedPayload } from '../../../../shape/payload-expectation.ts';
import type { Release } from '../../../../shape/release.ts';
import type { PayloadFolder } from '../../../fixtures/payload.ts';
import { planned } from '../../shape/rules/rule-cases.ts';

/** A look that is never over, however busy the machine is. */
export const unhurried: Outside = { ...realOutside, monotonicSeconds: () => 0 };

/** What differs from GLM's stack file; of `payload` what differs from a folder of which nothing is expected. */
export interface ShapeChanges {
  readonly payload?: object;
  readonly expected?: ExpectedPayload;
  readonly engine?: object;
  readonly mounts?: readonly object[];
}

const elsewhere = '/payload-of-a-test';

/** Planning takes longer than most looks. */
const usual = planned('glm-w4a16', { shape: { payload: { folder: elsewhere, expected: undefined } } });

export function servedBy({ path }: PayloadFolder, { expected, ...shape }: ShapeChanges = {}): Release {
  const payload = { folder: path, expected: undefined, ...shape.payload };
  const release =
    Object.keys(shape).length > 0
      ? planned('glm-w4a16', { shape: { ...shape, payload } })
      : {
          ...usual,
          unit: usual.unit.replaceAll(elsewhere, path),
          payload: { ...usual.payload, folder: path },
        };
  return expected === undefined ? release : { ...release, payload: { ...release.payload, expected } };
}

/** By R9V, pointed at this file of the payload. */
export function servedByR9v({ path }: PayloadFolder, entry: string): Release {
  return planned('r9v-q8_0', { shape: { payload: { folder: path, entry } } });
}

export interface LookOptions {
  readonly outside?: Outside;
  readonly extent?: Extent;
}

export function look(
  payload: PayloadFolder,
  shape: ShapeChanges = {},
  options: LookOptions = {},
): Promise<Inventory> {
  return lookAt(servedBy(payload, shape), options);
}

export function lookAt(
  release: Release,
  { outside = unhurried, extent = quickLook }: LookOptions = {},
): Promise<Inventory> {
  return inventoryOf(outside, release, extent);
}
