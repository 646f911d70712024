import type { Outside } from '../outside.ts';
import { type Found, findInContainer, type MountedTree } from './container-view.ts';
import type { Extent } from './extent.ts';
import { LookIsOver, PayloadFault } from './payload-fault.ts';
import { counted, shown } from './wording.ts';

/** A folder of more is no payload's. */
const mostEntries = 5000;

export interface Entry {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'other' | Exclude<Found['kind'], 'there'>;
  readonly found: Found;
  /** 0 for what is no file. */
  readonly bytes: number;
}

/** A folder as the engine sees it in its container, read in parts and for a limited time only. */
export interface PayloadFolder {
  /** In the container. */
  readonly path: string;
  readonly extent: Extent;
  /** By name, sorted. */
  readonly entries: ReadonlyMap<string, Entry>;
  /**
   * @throws PayloadFault where it is no file that the engine could read, or the time is over
   */
  part(
    name: string,
    offset: number,
    length: number,
  ): Promise<{ readonly bytes: Buffer; readonly fileBytes: number }>;
  /** Of a folder in it. */
  folder(name: string): Promise<PayloadFolder>;
}

/** One look at what a container sees: in it, all folders share the time. */
export interface Look {
  readonly outside: Outside;
  readonly trees: readonly MountedTree[];
  readonly extent: Extent;
  /** By the monotonic clock. */
  readonly end: number;
}

export function beginLook(outside: Outside, trees: readonly MountedTree[], extent: Extent): Look {
  return { outside, trees, extent, end: outside.monotonicSeconds() + extent.seconds };
}

/**
 * @param path in the container
 * @throws PayloadFault where it holds more than any payload
 */
export async function openFolder(look: Look, path: string): Promise<PayloadFolder> {
  const { outside, trees, extent, end } = look;
  const place = await findInContainer(outside, trees, path);
  const names = place.kind === 'there' ? await outside.list(place.path, mostEntries + 1) : [];
  if (names.length > mostEntries) {
    throw new PayloadFault(
      'refuse',
      `${shown(path)} holds more than ${counted(mostEntries, 'entry', 'entries')}`,
    );
  }
  const found = await Promise.all(
    names.map((name) => {
      if (outside.monotonicSeconds() > end) throw overTime(name, extent);
      return entryOf(look, path, name);
    }),
  );
  const entries = new Map(found.map((entry) => [entry.name, entry]));
  return {
    path,
    extent,
    entries,
    async part(name, offset, length) {
      const { found, kind } = entries.get(name) ?? (await entryOf(look, path, name));
      if (found.kind !== 'there' || kind !== 'file')
        throw new PayloadFault('refuse', `${shown(name)} ${insteadOfFile(kind)}`);
      if (outside.monotonicSeconds() > end) throw overTime(name, extent);
      const part = await outside.readPart(found.path, offset, length).catch((error: Error) => {
        throw new PayloadFault('refuse', `${shown(name)} cannot be read: ${error.message}`);
      });
      if (part === undefined) throw new PayloadFault('refuse', `${shown(name)} is not there`);
      const { bytes, fileBytes } = part;
      return { bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), fileBytes };
    },
    folder: (name) => openFolder(look, `${path}/${name}`),
  };
}

async function entryOf({ outside, trees }: Look, folder: string, name: string): Promise<Entry> {
  const found = await findInContainer(outside, trees, `${folder}/${name}`);
  if (found.kind !== 'there') return { name, kind: found.kind, found, bytes: 0 };
  const { kind, size } = found.status;
  return { name, kind, found, bytes: kind === 'file' ? size : 0 };
}

function overTime(name: string, { name: look, seconds, beyond }: Extent): LookIsOver {
  return new LookIsOver(
    beyond,
    `${shown(name)} and what follows was not looked at: ${look} ends after ${seconds} s`,
  );
}

/** Goes on after the name of what should be a file. */
export function insteadOfFile(kind: Entry['kind']): string {
  switch (kind) {
    case 'file':
      return 'is a file';
    case 'folder':
      return 'is a folder, no file';
    case 'other':
      return 'is a socket, pipe or device, no file';
    case 'absent':
      return 'is not there';
    case 'loop':
      return 'is a link that leads back to itself';
    case 'unreachable':
      return 'is a link that leads out of what is mounted';
  }
}
