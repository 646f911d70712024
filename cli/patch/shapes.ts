import { type ShapeWithHost, shapeWithHost } from '../../components/planned-shape.ts';
import { ConfigurationError, type Problem } from '../../shape/configuration.ts';
import { imageReference } from '../../shape/engines/image.ts';

/** What of a shape bears on its patches. */
export interface PatchedShape extends Pick<ShapeWithHost, 'file' | 'host'> {
  readonly stack: string;
  readonly repository: string;
  /** `registry/name@sha256:…`; a placeholder where that is not known. */
  readonly image: string;
  readonly isImageKnown: boolean;
  /** Paths below `patches/`, in their order. */
  readonly patches: readonly string[];
  /** Values without which its image or its host is not known; empty: both are. */
  readonly unknown: readonly Problem[];
}

/**
 * A shape, also one that the operator has not completed.
 *
 * @throws ConfigurationError with everything else that is wrong with it
 */
export function patchedShape(folder: string, stack: string): PatchedShape {
  const { file, shape, host, missing, unreachable } = shapeWithHost(folder, stack);
  const { image } = shape.engine;
  const ofImage = missing.filter(({ key }) => key.startsWith('slot:shape.engine.image'));
  return {
    stack,
    file,
    host,
    repository: image.repository,
    image: imageReference(image),
    isImageKnown: ofImage.length === 0,
    patches: shape.patches,
    unknown: [...unreachable, ...ofImage],
  };
}

/** @throws ConfigurationError where host or image are not known */
export function requireKnown({ unknown }: PatchedShape): void {
  if (unknown.length > 0) throw new ConfigurationError(unknown);
}
