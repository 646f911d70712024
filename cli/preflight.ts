import { plannedShape } from '../components/planned-shape.ts';
import { callHost, longSeconds } from './host-program.ts';

/** Has the host try a shape in throw-away containers while what serves goes on. */
export async function preflight(folder: string, stack: string): Promise<number> {
  const { host, release } = plannedShape(folder, stack);
  process.stderr.write(`${host.name}: preflight of ${stack}, which can take minutes\n`);
  return callHost(host, ['preflight'], { input: JSON.stringify(release), timeoutSeconds: longSeconds });
}
