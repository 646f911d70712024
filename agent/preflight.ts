import type { Finding } from '../shape/inspection.ts';
import { sizeText } from '../shape/memory/amounts.ts';
import { namesOf } from '../shape/names.ts';
import type { PayloadFacts } from '../shape/payload-facts.ts';
import { treesOf } from '../shape/payload-seals.ts';
import { type Release, releaseIdOf } from '../shape/release.ts';
import { expertOffloadQuantization } from '../shape/rules/model.ts';
import { quantizationFlag } from '../shape/rules/payload.ts';
import { hostMemory } from './devices.ts';
import { engineUnit } from './engine.ts';
import { foreignFindings } from './foreign.ts';
import { requireManifest, verifyTree } from './hashing/sealed-payload.ts';
import { entrypointFault } from './image-description.ts';
import type { Outside } from './outside.ts';
import { applyPatches, patchedFileFault } from './patches.ts';
import { tryPatches } from './patches-in-effect.ts';
import { wholeInventory } from './payload/extent.ts';
import { type Inventory, inventoryOf } from './payload/inventory.ts';
import { hasSecret, imageState } from './podman.ts';
import { type Slot, StageFailure } from './stages.ts';
import type { PreflightResults, Store } from './store.ts';
import { runThrowAway } from './throw-away.ts';
import { parseArguments } from './vllm-parser.ts';

interface Preflight extends Slot {
  readonly store: Store;
  readonly release: Release;
}

/** A check answers with what it found, or throws with the reason why the release cannot be tried. */
type PreflightCheck = (preflight: Preflight) => Promise<string>;

/** Free space that logs, records and container layers of a run may need, in bytes. */
const diskReserveBytes = 1024 ** 3;

/** systemd refuses to load units with less than 16 MiB free in /run; twice that. */
const runReserveBytes = 32 * 1024 ** 2;

/** What an image's absence comes to: whether the repository is known here, and how the pinned image gets here. */
const absences = {
  'under another digest': [
    'only another digest of the repository is on this host',
    'where it was carried by podman save and load, which lose the digest: use skopeo copy --preserve-digests',
  ],
  absent: [
    'nothing of the repository is on this host',
    'let the host reach the registry, or carry the image there with skopeo copy --preserve-digests',
  ],
} as const;

/** Checks whose results say nothing any more when the payload changes. */
export const payloadChecks: readonly string[] = ['payload', 'payload hashes'];

/** All that can be known while the old engine serves, cheapest first. */
const checks: Readonly<Record<string, PreflightCheck>> = {
  tools: async ({ outside }) => {
    const tools = ['systemctl', 'systemd-run', 'podman', 'curl', 'ss'];
    const missing: string[] = [];
    for (const tool of tools) {
      const found = await outside.run('sh', ['-c', `command -v ${tool}`]);
      if (found.exitCode !== 0) missing.push(tool);
    }
    if (missing.length > 0) throw new Error(`not on this host: ${missing.join(', ')}; install them`);
    return `${tools.join(', ')} are there`;
  },

  'no foreign occupant': refuseForeign,

  unit: async ({ outside, service, release }) => {
    const folder = `/run/slot-verify-${process.pid}`;
    const path = `${folder}/${namesOf(service).unit}`;
    await outside.makeFolder(folder);
    try {
      await outside.writeDurably(path, release.unit);
      const result = await outside.run('systemd-analyze', [
        'verify',
        '--man=no',
        '--recursive-errors=no',
        path,
      ]);
      const said = `${result.stdout}${result.stderr}`.trim();
      // Its exit status alone passes over keys and values that systemd ignores.
      if (result.exitCode !== 0 || said !== '') throw new Error(`systemd does not take it: ${said}`);
    } finally {
      await outside.removeDurably(folder);
    }
    return 'systemd takes it without a message';
  },

  'device files': async ({ outside, release }) => {
    for (const path of release.deviceFiles) {
      if ((await outside.kindOf(path)) === 'absent') throw new Error(`${path} is not on this host`);
    }
    for (const pci of release.gpus) {
      if ((await outside.kindOf(`/sys/bus/pci/devices/${pci}`)) === 'absent') {
        throw new Error(`there is no PCI device ${pci}; see lspci -D`);
      }
    }
    return release.deviceFiles.length === 0 ? 'none asked for' : release.deviceFiles.join(', ');
  },

  payload: async ({ outside, progress, release }) => {
    const inventory = await inventoryOf(outside, release, wholeInventory);
    await tellWarnings(inventory, progress);
    refuseDamage([...inventory.findings, ...payloadViolations(release, inventory.facts)]);
    for (const state of release.stateFolders) {
      if ((await outside.kindOf(state)) !== 'folder') {
        throw new Error(`state directory ${state} is not on this host; it is never made or emptied here`);
      }
    }
    return inventory.contents.join('; ') || release.payload.folder;
  },

  image: async ({ outside, progress, release }) => {
    const state = await imageState(outside, release.image);
    if (state === 'present') return 'present by digest';
    const [what, remedy] = absences[state];
    await progress.say(`${what}; pulling the pinned image`);
    await pull(outside, progress, release.image).catch((error: Error) => {
      throw new Error(`${what}, and ${error.message}; ${remedy}`);
    });
    if ((await imageState(outside, release.image)) !== 'present') {
      throw new Error(`${release.image} was pulled and is not there by this digest`);
    }
    return 'pulled';
  },

  disk: async ({ outside, service }) => {
    const { stateFolder } = namesOf(service);
    const needs: Readonly<Record<string, number>> = {
      [stateFolder]: diskReserveBytes,
      '/var/lib/containers': diskReserveBytes,
      '/var/log': diskReserveBytes,
      '/run': runReserveBytes,
    };
    for (const [folder, needed] of Object.entries(needs)) {
      const result = await outside.run('df', ['--output=avail', '--block-size=1', folder]);
      const available = Number(result.stdout.trim().split('\n').pop());
      if (result.exitCode === 0 && available < needed) {
        throw new Error(
          `${folder} has ${sizeText(available)} free, ${sizeText(needed)} are needed; make room`,
        );
      }
    }
    return 'at least 1 GiB free for state, containers and logs';
  },

  secrets: async ({ outside, release }) => {
    for (const { variable, name } of release.secrets) {
      if (!(await hasSecret(outside, name))) {
        throw new Error(`secret ${name} for ${variable} is not on this host; pulumi up puts it there`);
      }
    }
    return release.secrets.length === 0 ? 'none' : release.secrets.map(({ name }) => name).join(', ');
  },

  patches: async ({ outside, release }) => {
    if (release.patches.length === 0) return 'none';
    await applyPatches(outside, release);
    return release.patches.map((patch) => patch.target).join(', ');
  },

  imports: async ({ outside, release }) =>
    release.patches.length === 0 ? 'no module is patched' : tryPatches(outside, release),

  arguments: async ({ outside, release }) => {
    const fault = await entrypointFault(outside, release);
    if (fault !== undefined) throw new Error(fault);
    if (release.engineKind !== 'vllm') return 'this engine offers no parse-only run';
    const result = await runThrowAway(outside, {
      image: release.image,
      entrypoint: 'python3',
      arguments: ['-c', parseArguments, ...release.arguments],
    });
    if (result.exitCode === 0) return 'accepted by the pinned image';
    const lastLine = result.stderr.trim().split('\n').pop() ?? '';
    // argparse ends with status 2; anything else means that the image cannot parse without running.
    if (result.exitCode === 2) throw new Error(`the pinned image refuses them: ${lastLine}`);
    return `not checked: the image's parser did not run (exit ${result.exitCode}: ${lastLine})`;
  },

  limits: async ({ outside, release }) => {
    const limit = release.memlock === 'infinity' ? 'infinity' : String(release.memlock);
    const result = await runThrowAway(outside, {
      image: release.image,
      entrypoint: 'cat',
      arguments: ['/proc/self/limits'],
      memlock: limit,
    });
    if (result.exitCode !== 0)
      throw new Error(`a container under these limits does not start: ${result.stderr.trim()}`);
    const [, soft, hard] = result.stdout.match(/^Max locked memory\s+(\S+)\s+(\S+)/m) ?? [];
    const wanted = release.memlock === 'infinity' ? 'unlimited' : limit;
    if (soft !== wanted || hard !== wanted) {
      throw new Error(
        `locked memory reaches a container as ${soft} (hard ${hard}), the shape asks for ${wanted}`,
      );
    }
    return `locked memory ${release.memlock === 'infinity' ? wanted : sizeText(release.memlock)} reaches a container`;
  },

  'memory forecast': async ({ outside, service, progress, release }) => {
    const { ControlGroup } = await engineUnit(outside, service);
    const { afterStopBytes: forecast } = await hostMemory(outside, ControlGroup, release.gpus);
    const text = `${sizeText(forecast)} available after the stop, the gate is ${sizeText(release.memoryGateBytes)}`;
    // Memory pinned for the GPU is charged to nobody: only the gate after the stop may refuse.
    if (forecast < release.memoryGateBytes) await progress.say(`warning: ${text}`);
    return text;
  },

  'rollback set': async (preflight) => {
    const { outside, store } = preflight;
    const { occupant } = await store.slot();
    if (occupant === null) return 'the slot is empty: nothing to come back to';
    const previous = await store.release(occupant.releaseId);
    if ((await imageState(outside, previous.image)) !== 'present') {
      throw new Error(`image ${previous.image} of ${previous.shape} is gone: there would be no way back`);
    }
    const { findings } = await inventoryOf(outside, previous, wholeInventory);
    try {
      refuseDamage(findings);
    } catch (error) {
      throw new Error(
        `the payload of ${previous.shape}: ${(error as Error).message}: there would be no way back`,
      );
    }
    await verifySealed(preflight, previous).catch((error: Error) => {
      throw new Error(`${error.message}\nThere would be no way back to ${previous.shape}`);
    });
    for (const patch of previous.patches) {
      const fault = await patchedFileFault(outside, previous, patch);
      if (fault !== undefined) throw new Error(`${fault}: there would be no way back`);
    }
    for (const { name } of previous.secrets) {
      if (!(await hasSecret(outside, name))) {
        throw new Error(`secret ${name} of ${previous.shape} is gone: there would be no way back`);
      }
    }
    return `${previous.shape} can be served again`;
  },

  'payload hashes': async (preflight) =>
    (await verifySealed(preflight, preflight.release)) ?? 'not asked for: slot:shape.payload.verify',

  // Pulls and throw-away containers take their time, in which somebody may have come.
  'still no foreign occupant': refuseForeign,
};

/**
 * Every file that a release mounts and never writes has the hash of its manifest.
 *
 * @returns what was found; undefined: the release does not ask for hashes
 * @throws Error with what differs
 */
export async function verifySealed(
  { outside, service, progress }: Slot,
  release: Release,
): Promise<string | undefined> {
  if (release.payload.verify !== 'hashes') return undefined;
  const found: string[] = [];
  for (const tree of treesOf(release)) {
    requireManifest(tree, release.shape);
    found.push(await verifyTree({ outside, service, say: (line) => progress.say(line) }, tree));
  }
  return found.join('; ');
}

async function tellWarnings({ findings }: Inventory, progress: Slot['progress']): Promise<void> {
  for (const { severity, subject, message } of findings) {
    if (severity === 'warn') await progress.say(`warning: ${subject}: ${message}`);
  }
}

/** What rules refuse that compare the release with its payload: the payload may have changed since the preview. */
function payloadViolations(release: Release, facts: PayloadFacts | null): readonly Finding[] {
  if (facts === null) return [];
  const measured = { quantization: facts.quantization?.method ?? null, payload: facts };
  const exceptions = release.review?.exceptions ?? {};
  return [expertOffloadQuantization, quantizationFlag].flatMap(({ id, reason, examine }) => {
    const found = Object.hasOwn(exceptions, id) ? undefined : examine({ release, measured });
    return found === undefined ? [] : [{ severity: 'refuse', subject: id, message: `${found}: ${reason}` }];
  });
}

/** @throws Error with all that refuses, by what it is of */
function refuseDamage(findings: readonly Finding[]): void {
  const damage = findings.filter(({ severity }) => severity === 'refuse');
  if (damage.length === 0) return;
  throw new Error(damage.map(({ subject, message }) => `${subject}: ${message}`).join('\n'));
}

async function refuseForeign({ outside, store, service, release }: Preflight): Promise<string> {
  const findings = await foreignFindings(outside, store, service, release.port);
  const [first] = findings;
  if (first !== undefined) throw new Error(findings.map((finding) => finding.message).join('; '));
  return 'unit, drop-ins, containers and port are free or ours';
}

/** Runs all checks in order, records each result, and throws a `StageFailure` at the first that fails. */
export async function preflight(context: Preflight): Promise<void> {
  const results: PreflightResults = [];
  const record = async (check: string, result: string) => {
    results.push({ check, at: context.outside.now().toISOString(), result });
    await context.store.savePreflight(releaseIdOf(context.release), results);
  };
  for (const [check, ask] of Object.entries(checks)) {
    try {
      const result = await ask(context);
      await record(check, result);
      await context.progress.say(`${check}: ${result}`);
    } catch (error) {
      const message = (error as Error).message;
      await record(check, `failed: ${message}`);
      throw new StageFailure(`preflight: ${check}`, message);
    }
  }
}

async function pull(outside: Outside, progress: Slot['progress'], reference: string): Promise<void> {
  await progress.say(`pulling ${reference}`);
  let spokenAt = outside.monotonicSeconds();
  const result = await outside.run('podman', ['pull', reference], {
    timeoutSeconds: 6 * 3600,
    onLine: (line) => {
      const now = outside.monotonicSeconds();
      if (now - spokenAt < 10) return;
      spokenAt = now;
      void progress.say(`pulling: ${line.trim()}`);
    },
  });
  if (result.exitCode !== 0) {
    throw new Error(`podman pull ${reference}: ${result.stderr.trim().split('\n').pop()}`);
  }
}
