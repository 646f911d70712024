import type { Findings } from './findings.ts';
import type { Entry, PayloadFolder } from './folder.ts';
import { listed } from './wording.ts';

/** Folders in each other that are gone into; engines read the outermost, and at most a few in it. */
const deepest = 4;
const mostFolders = 200;

interface Link {
  readonly name: string;
  readonly found: Entry['found'];
}

/** Links of a folder and those in it that do not lead to a file of the container, with what to do. */
export async function tellLinks(folder: PayloadFolder, findings: Findings): Promise<void> {
  const links: Link[] = [];
  const folders = [{ prefix: '', depth: 0, open: async () => folder }];
  for (let opened = 0; opened < Math.min(folders.length, mostFolders); opened += 1) {
    const { prefix = '', depth = 0, open } = folders[opened] ?? {};
    const inner = await open?.();
    for (const { name, kind, found } of inner?.entries.values() ?? []) {
      const path = `${prefix}${name}`;
      if (found.kind !== 'there') links.push({ name: path, found });
      // What is hidden, as a download's own cache, no engine reads; a link to a folder could lead in a circle.
      else if (kind === 'folder' && found.link === undefined && depth < deepest && !name.startsWith('.')) {
        folders.push({
          prefix: `${path}/`,
          depth: depth + 1,
          open: async () => inner?.folder(name) ?? folder,
        });
      }
    }
  }
  tell(links, findings);
}

function tell(links: readonly Link[], findings: Findings): void {
  const of = (belongs: (found: Entry['found']) => boolean): readonly string[] =>
    links.filter(({ found }) => belongs(found)).map(({ name }) => name);
  const present = of((found) => found.kind === 'unreachable' && found.onHost);
  if (present.length > 0) {
    const { found } = links.find(({ name }) => name === present[0]) ?? {};
    const target = found?.kind === 'unreachable' ? found.target : '';
    findings.add(
      'refuse',
      `${listed(present)} ${present.length === 1 ? 'leads' : 'lead'} to ${target} in the container, where nothing is mounted: present on the host, not reachable in the container. ` +
        "Put the files in place of the links (cp -rL), or mount a folder that holds both: of Hugging Face's cache models--…, with entry snapshots/<revision>",
    );
  }
  const dangling = of((found) => found.kind === 'absent' || (found.kind === 'unreachable' && !found.onHost));
  if (dangling.length > 0)
    findings.add(
      'refuse',
      `${listed(dangling)} ${dangling.length === 1 ? 'is a link' : 'are links'} to what does not exist: copy the files again`,
    );
  const loops = of((found) => found.kind === 'loop');
  if (loops.length > 0)
    findings.add(
      'refuse',
      `${listed(loops)} ${loops.length === 1 ? 'is a link that leads back to itself' : 'are links that lead back to themselves'}`,
    );
}
