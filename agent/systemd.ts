import type { Outside } from './outside.ts';

/** Properties of a unit as systemd tells them; an unknown unit has `LoadState` `not-found`. */
export async function showUnit<Name extends string>(
  outside: Outside,
  unit: string,
  properties: readonly Name[],
): Promise<Record<Name, string>> {
  const result = await outside.run('systemctl', ['show', unit, `--property=${properties.join(',')}`]);
  if (result.exitCode !== 0) throw new Error(`systemctl show ${unit}: ${result.stderr.trim()}`);
  const shown = Object.fromEntries(properties.map((name) => [name, ''])) as Record<Name, string>;
  for (const line of result.stdout.split('\n')) {
    const separator = line.indexOf('=');
    const name = line.slice(0, separator);
    if (separator > 0 && name in shown) shown[name as Name] = line.slice(separator + 1);
  }
  return shown;
}

export async function isEnabled(outside: Outside, unit: string): Promise<string> {
  const { stdout } = await outside.run('systemctl', ['is-enabled', unit]);
  return stdout.trim();
}

/** Runs a `systemctl` verb and turns a refusal into an error with systemd's own words. */
export async function systemctl(
  outside: Outside,
  args: readonly string[],
  timeoutSeconds = 120,
): Promise<void> {
  const result = await outside.run('systemctl', args, { timeoutSeconds });
  if (result.exitCode !== 0) {
    throw new Error(`systemctl ${args.join(' ')}: ${result.stderr.trim() || `exit ${result.exitCode}`}`);
  }
}

/** Whether a unit in this `ActiveState` does something or is about to; one that is not there is `inactive`. */
export function isUnderWay(activeState: string): boolean {
  return activeState !== 'inactive' && activeState !== 'failed';
}
