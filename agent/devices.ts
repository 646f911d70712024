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
  return bytesIn((await outside.readText('/proc/meminfo')) ?? '', 'MemAvailable');
}

/** The host's memory, in bytes, at one moment. */
export interface HostMemory {
  readonly availableBytes: number;
  readonly totalBytes: number;
  /** MemAvailable, and what the engine that runs now gives back when it is stopped. */
  readonly afterStopBytes: number;
  /** What all GPU drivers may allocate of it; null: the kernel shows no such limit. */
  readonly gpuPagesBytes: number | null;
}

/** A page of the processors that these GPUs are used with. */
const pageBytes = 4096;

/**
 * Memory that is pinned for a GPU is charged to nobody, but the driver counts it: the engine gives back its own or
 * that, whichever is more, as one may be part of the other.
 *
 * @param controlGroup of the engine that runs now; empty: none runs
 */
export async function hostMemory(
  outside: Outside,
  controlGroup: string,
  pciAddresses: readonly string[],
): Promise<HostMemory> {
  const [meminfo = '', pages, statistics = '', ...mapped] = await Promise.all([
    outside.readText('/proc/meminfo'),
    outside.readText('/sys/module/ttm/parameters/pages_limit'),
    controlGroup === '' ? undefined : outside.readText(`/sys/fs/cgroup${controlGroup}/memory.stat`),
    ...pciAddresses.map((pci) => outside.readText(`/sys/bus/pci/devices/${pci}/mem_info_gtt_used`)),
  ]);
  const availableBytes = bytesIn(meminfo, 'MemAvailable');
  const ownBytes = Number(/^anon (\d+)$/m.exec(statistics)?.[1] ?? 0);
  const mappedBytes = mapped.reduce<number>((sum, text) => sum + wholeNumber(text), 0);
  return {
    availableBytes,
    totalBytes: bytesIn(meminfo, 'MemTotal'),
    afterStopBytes: availableBytes + (controlGroup === '' ? 0 : Math.max(ownBytes, mappedBytes)),
    gpuPagesBytes: pages === undefined ? null : wholeNumber(pages) * pageBytes,
  };
}

/** 0 where there is no number. */
function wholeNumber(text: string | undefined): number {
  return Number(/^\d{1,15}$/.exec(text?.trim() ?? '')?.[0] ?? 0);
}

function bytesIn(meminfo: string, field: string): number {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(meminfo);
  if (!found) throw new Error(`/proc/meminfo has no ${field}`);
  return Number(found[1]) * 1024;
}
