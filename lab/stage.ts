import { prepareToolchain, type Toolchain } from '../toolchain/prepare.ts';
import { buildEngineImage } from './engine/image.ts';
import type { LabKind } from './host.ts';
import { createLab, type Lab } from './lab.ts';
import type { LabImages } from './overlay.ts';
import { labFolders } from './payload/lab-folders.ts';
import { pushImage, REGISTRY } from './registry.ts';
import { Workplace } from './workplace.ts';

/** A lab host with all that a shape needs of it, and an operator's desk before it. */
export interface Stage {
  readonly lab: Lab;
  readonly workplace: Workplace;
  readonly toolchain: Toolchain;
  readonly images: LabImages;
  /** Ends host and desk. */
  close(): Promise<void>;
}

export interface StageOptions {
  readonly kind: LabKind;
  /** Default: the lowest free of `lab-0`, `lab-1`, … */
  readonly name?: string;
  /** Told what is done; default: nobody. */
  readonly progress?: (line: string) => void;
}

/** A bare host: `host up` has not run on it. */
export async function openStage({ kind, name, progress = () => {} }: StageOptions): Promise<Stage> {
  const toolchain = await prepareToolchain({ progress });
  const images = await labImages(progress);
  const lab = await createLab({ kind, progress, ...(name !== undefined && { name }) });
  try {
    const folders = await lab.ssh('sh -s', { root: true, input: await labFolders() });
    if (folders.exitCode !== 0) throw new Error(`the payload folders of ${lab.name}: ${folders.stderr}`);
    const workplace = await Workplace.create(lab, toolchain, images);
    return {
      lab,
      workplace,
      toolchain,
      images,
      async close() {
        await workplace.close();
        await lab.down();
      },
    };
  } catch (error) {
    await lab.down();
    throw error;
  }
}

async function labImages(progress: (line: string) => void): Promise<LabImages> {
  const name = 'tcclaviger/vllm';
  const vllm = await buildEngineImage({ engine: 'vllm', progress });
  const r9v = await buildEngineImage({ engine: 'r9v', progress });
  return {
    repository: `${REGISTRY}/${name}`,
    vllm: await pushImage(vllm.reference, `${name}:vllm`),
    r9v: await pushImage(r9v.reference, `${name}:r9v`),
  };
}
