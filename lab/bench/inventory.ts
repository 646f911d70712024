import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { realOutside } from '../../agent/outside.ts';
import { quickLook } from '../../agent/payload/extent.ts';
import { inventoryOf } from '../../agent/payload/inventory.ts';
import { draftedShape } from '../../components/planned-shape.ts';
import { writeGlm } from '../payload/folders.ts';
import { byTurns } from './by-turns.ts';
import type { Measure } from './measure.ts';

const project = join(import.meta.dirname, '..', '..');

/**
 * The inventory of an inspection on a payload as large as GLM's, against the least that reads the same headers: index
 * and headers are parsed, and nothing is compared.
 */
export async function measureInventory(rounds: number): Promise<Measure> {
  const folder = await mkdtemp(join(tmpdir(), 'slot-inventory-'));
  try {
    await writeGlm(folder);
    const { release } = draftedShape(project, 'glm-w4a16');
    const placed = {
      ...release,
      unit: release.unit.replaceAll(release.payload.folder, folder),
      payload: { ...release.payload, folder },
    };
    const { product, floor } = await byTurns(
      rounds,
      async () => {
        const { findings, contents } = await inventoryOf(realOutside, placed, quickLook);
        if (findings.length > 0) throw new Error(findings.map(({ message }) => message).join('\n'));
        if (!contents[0]?.includes('34 files and 2 extra files, 113,074 tensors, 170.0')) {
          throw new Error(`not the recorded payload: ${contents.join()}`);
        }
      },
      async () => readHeaders(folder),
    );
    return {
      title: 'inventory of a payload of 34 + 2 files, 113,074 tensors, 170 GiB',
      product: { what: 'inventory', seconds: product },
      floor: { what: 'index and headers parsed', seconds: floor },
      limit: { kind: 'ratio', atMost: 1.5 },
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function readHeaders(folder: string): Promise<void> {
  const names = await readdir(folder);
  JSON.parse(await readFile(join(folder, 'model.safetensors.index.json'), 'utf8'));
  for (const name of names.filter((own) => own.endsWith('.safetensors'))) {
    const file = await open(join(folder, name));
    const length = Buffer.alloc(8);
    await file.read(length, 0, 8, 0);
    const header = Buffer.alloc(Number(length.readBigUInt64LE(0)));
    await file.read(header, 0, header.length, 8);
    await file.close();
    JSON.parse(header.toString('utf8'));
  }
}
