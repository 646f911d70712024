import type { Outside } from './outside.ts';

export interface GpuMemory {
  /** PCI address, e.g. `0000:03:00.0`. */
  readonly pci: string;
  readonly vramTotalBytes: number;
  readonly vramUsedBytes: number;
}

/** Video memory of the GPUs by PCI address; one that the kernel does not show is left out. */
export async function gpuMemory(outside: Outside, pciAddresses: readonly string[]): Promise<GpuMemory[]> {
  const found: GpuMemory[] = [];
  for (const pci of pciAddresses) {
    const folder = `/sys/bus/pci/devices/${pci}`;
    const total = await outside.readText(`${folder}/mem_info_vram_total`);
    const used = await outside.readText(`${folder}/mem_info_vram_used`);
    if (total !== undefined && used !== undefined) {
      found.push({ pci, vramTotalBytes: Number(total), vramUsedBytes: Number(used) });
    }
  }
  return found;
}

/** Processes that hold GPU compute contexts, with their command names. */
export async function gpuHolders(outside: Outside): Promise<string[]> {
  const pids = await outside.list('/sys/class/kfd/kfd/proc');
  return Promise.all(
    pids.map(
      async (pid) => `${(await outside.readText(`/proc/${pid}/comm`))?.trim() ?? 'gone'} (pid ${pid})`,
    ),
  );
}

export async function memAvailableBytes(outside: Outside): Promise<number> {
  const text = (await outside.readText('/proc/meminfo')) ?? '';
  const found = text.match(/^MemAvailable:\s+(\d+) kB/m);
  if (!found) throw new Error('/proc/meminfo has no MemAvailable');
  return Number(found[1]) * 1024;
}
