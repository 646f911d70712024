import type { Outside } from './outside.ts';

export interface Listener {
  readonly pid: number;
  readonly program: string;
}

/** Who listens on a TCP port of this host, any address. */
export async function listenersOn(outside: Outside, port: number): Promise<Listener[]> {
  const result = await outside.run('ss', [
    '--no-header',
    '--tcp',
    '--listening',
    '--numeric',
    '--processes',
    `sport = :${port}`,
  ]);
  if (result.exitCode !== 0) throw new Error(`ss: ${result.stderr.trim()}`);
  const lines = result.stdout.split('\n').filter((line) => line.trim() !== '');
  return lines.flatMap((line) => {
    const holders = [...line.matchAll(/\("([^"]*)",pid=(\d+)/g)];
    if (holders.length === 0) return [{ pid: 0, program: 'unknown' }];
    return holders.map((holder) => ({ program: holder[1] ?? '', pid: Number(holder[2]) }));
  });
}

/** The process's cgroup below the unified hierarchy, e.g. `/system.slice/frank-archon.service/…`. */
export async function cgroupOf(outside: Outside, pid: number): Promise<string | undefined> {
  const text = await outside.readText(`/proc/${pid}/cgroup`);
  return text
    ?.split('\n')
    .find((line) => line.startsWith('0::'))
    ?.slice(3);
}

/** Processes of a cgroup and of those below it. */
export async function processesIn(outside: Outside, cgroup: string): Promise<number[]> {
  const folder = `/sys/fs/cgroup${cgroup}`;
  const own = (await outside.readText(`${folder}/cgroup.procs`)) ?? '';
  const pids = own
    .split('\n')
    .filter((line) => line !== '')
    .map(Number);
  for (const name of await outside.list(folder)) {
    if ((await outside.kindOf(`${folder}/${name}`)) === 'folder') {
      pids.push(...(await processesIn(outside, `${cgroup}/${name}`)));
    }
  }
  return pids;
}

/** Soft and hard limit of a running process in bytes, `infinity` for none: what the unit says is no proof. */
export async function memlockOf(
  outside: Outside,
  pid: number,
): Promise<{ soft: number | 'infinity'; hard: number | 'infinity' } | undefined> {
  const limits = await outside.readText(`/proc/${pid}/limits`);
  const found = limits?.match(/^Max locked memory\s+(\S+)\s+(\S+)/m);
  if (!found) return undefined;
  const value = (text: string | undefined) => (text === 'unlimited' ? 'infinity' : Number(text));
  return { soft: value(found[1]), hard: value(found[2]) };
}

export async function environmentOf(outside: Outside, pid: number): Promise<Map<string, string> | undefined> {
  const text = await outside.readText(`/proc/${pid}/environ`);
  if (text === undefined) return undefined;
  return new Map(
    text
      .split('\0')
      .filter((entry) => entry.includes('='))
      .map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
  );
}
