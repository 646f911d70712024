import { namesOf } from '../../shape/names.ts';
import type { LabHost } from '../host.ts';
import type { ShapeStack } from '../overlay.ts';
import type { Stage } from '../stage.ts';
import type { Measure } from './measure.ts';
import { outageSeconds, Prober } from './prober.ts';
import { rootOn } from './root.ts';

interface Side {
  readonly stack: ShapeStack;
  readonly shortName: string;
  readonly servedName: string;
}

const glm: Side = { stack: 'glm-w4a16', shortName: 'glm', servedName: 'glm53-flash' };
const qwen: Side = { stack: 'qwen-fp8-mtp4', shortName: 'qwen', servedName: 'qwen38-flash-next' };

const service = 'frank-archon';
const { unit, committedUnitPath } = namesOf(service);
const floorUnit = ({ shortName }: Side) => `floor-${shortName}.service`;
/** Loading takes 2 s, and a busy machine longer. */
const patienceSeconds = 60;

/**
 * Cutovers by `pulumi up`, and by turns with them the floor: the same two units under other names, stopped and
 * started by hand with one ssh command. Qwen must serve, and serves afterwards.
 */
export async function measureOutage(
  stage: Stage,
  rounds: number,
  tell: (line: string) => void,
): Promise<Measure> {
  const { lab } = stage;
  await copyInstalledUnit(lab, qwen);
  await cutOver(stage, glm);
  await copyInstalledUnit(lab, glm);
  await cutOver(stage, qwen);

  const [product, floor]: [number[], number[]] = [[], []];
  // The first round is not counted: the floor's units have not run before. An even number ends at qwen.
  for (let round = 0; round <= rounds || round % 2 === 1; round += 1) {
    const [from, to] = round % 2 === 0 ? [qwen, glm] : [glm, qwen];
    const cutover = await outageOf(lab, from, to, () => cutOver(stage, to));
    await rootOn(lab, `systemctl stop ${unit}; systemctl start ${floorUnit(from)}`);
    const byHand = `systemctl stop ${floorUnit(from)}; systemctl start ${floorUnit(to)}`;
    const hand = await outageOf(lab, from, to, () => rootOn(lab, byHand));
    await rootOn(lab, `systemctl stop ${floorUnit(to)}; systemctl start ${unit}`);
    tell(
      `  ${round === 0 ? 'not counted' : `round ${round}`}: ${from.shortName} → ${to.shortName} cutover ${cutover.toFixed(3)} s, by hand ${hand.toFixed(3)} s`,
    );
    if (round === 0) continue;
    product.push(cutover);
    floor.push(hand);
  }
  return {
    title: 'Outage of a cutover: last good answer of the old engine to the first of the new one',
    product: { what: 'pulumi up', seconds: product },
    floor: { what: 'by hand, one ssh command', seconds: floor },
    limit: { kind: 'difference', atMostSeconds: 0.3 },
  };
}

async function cutOver({ workplace }: Stage, to: Side): Promise<void> {
  const { exitCode, output } = await workplace.up(to.stack);
  if (exitCode !== 0) throw new Error(`pulumi up on ${to.stack}: ${output}`);
}

async function outageOf(lab: LabHost, from: Side, to: Side, change: () => Promise<unknown>): Promise<number> {
  const prober = new Prober(lab.engineUrl);
  try {
    await prober.sees(from.servedName, patienceSeconds);
    await change();
    await prober.sees(to.servedName, patienceSeconds);
  } finally {
    prober.stop();
  }
  return outageSeconds(prober.answers, from.servedName, to.servedName);
}

async function copyInstalledUnit(lab: LabHost, side: Side): Promise<void> {
  const installed = await rootOn(lab, `cat ${committedUnitPath}`);
  const container = `${service}-${side.shortName}`;
  if (!installed.includes(container)) throw new Error(`${committedUnitPath} does not start ${container}`);
  await rootOn(
    lab,
    `cat >/run/systemd/system/${floorUnit(side)} && systemctl daemon-reload`,
    installed.replaceAll(container, `floor-${side.shortName}`),
  );
}
