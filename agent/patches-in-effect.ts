import { type PatchedFile, parsePatchFile } from '../shape/patches.ts';
import type { Release } from '../shape/release.ts';
import { unitTextOf } from '../shape/unit-text.ts';
import type { Outside } from './outside.ts';
import { hashOf, patchedPath } from './patches.ts';
import { type Container, imageEntrypoint } from './podman.ts';
import {
  type ProbeAnswer,
  type ProbedFile,
  type ProbeFinding,
  probeAnswerOf,
  probeWords,
} from './python-probe.ts';
import { runThrowAway } from './throw-away.ts';

/** An import of a large engine takes its time; a throw-away container has 300 s. */
const importSeconds = 270;

/** Beside a running engine: what a probe needs is read by then, or something is wrong. */
const runningProbeSeconds = 120;

/**
 * Has the image's Python import each patched module in a throw-away container, with the files mounted as the unit
 * mounts them. Throws where it would run other code than that of the patched file.
 */
export async function tryPatches(outside: Outside, release: Release): Promise<string> {
  const mounted = await probeThrowAway(outside, release, patchMounts(release));
  const faults = release.patches.flatMap((patched) => inertFault(mounted, patched) ?? []);
  if (faults.length > 0) throw new Error(faults.join('; '));

  const wanted = release.patches.map((patched) => ({
    patched,
    found: findingOf(mounted, patched),
    markers: markersOf(patched),
  }));
  const isDoubtful = wanted.some(
    ({ found, markers }) => markers.length > 0 || importError(found) !== undefined,
  );
  // What fails without the patch as well says nothing of it: no GPU is there.
  const pristine = isDoubtful ? await probeThrowAway(outside, release, []) : undefined;
  const notImported: string[] = [];
  for (const { patched, found, markers } of wanted) {
    const { target } = patched;
    const error = importError(found);
    const without = pristine && findingOf(pristine, patched);
    if (error !== undefined && plain(error) !== plain(importError(without) ?? '')) {
      throw new Error(`${target} cannot be imported with its patches: ${error}`);
    }
    if (error !== undefined) notImported.push(`${found?.module} (${error})`);
    if (markers.length === 0) continue;
    if (error !== undefined) {
      throw new Error(
        `${target}: its marker cannot be seen, the image's own module is not to be imported without a GPU either: ${error}; take the line "Marker:" out, the code is compared all the same`,
      );
    }
    const fault = markerFault(found, target, markers);
    if (fault !== undefined) throw new Error(fault);
    const vague = markers.find((_, index) => without?.imported?.markers?.[index] === true);
    if (vague !== undefined) {
      throw new Error(`${target}: its marker holds without the patch too (${vague}), so it proves nothing`);
    }
  }
  const python = `Python ${mounted.python.version} takes the code of every patched file`;
  return notImported.length === 0
    ? `${python} and imports them`
    : `${python}; not imported, as their originals are not without a GPU: ${notImported.join(', ')}`;
}

/**
 * Has the Python of the engine's container, in it, say that it runs the patched files. Modules are only found and
 * their code is compared: an import would load the engine a second time. One that has a marker is imported, with the
 * GPUs hidden from it. Throws where other code would be run.
 */
export async function provePatchesRun(
  outside: Outside,
  release: Release,
  container: Container,
): Promise<string> {
  const hidden = ['HIP_VISIBLE_DEVICES', 'ROCR_VISIBLE_DEVICES', 'CUDA_VISIBLE_DEVICES'];
  const words = probeWords({
    words: [],
    files: release.patches.map((patched) => probed(patched, markersOf(patched).length > 0)),
    limitSeconds: runningProbeSeconds,
  });
  const { stdout, stderr, exitCode } = await outside.run(
    'podman',
    ['exec', ...hidden.map((name) => `--env=${name}=-1`), container.Id, 'python3', ...words],
    { timeoutSeconds: runningProbeSeconds + 10 },
  );
  const answer = probeAnswerOf(stdout);
  if (answer === undefined)
    throw new Error(`its Python does not answer (exit ${exitCode}): ${lastLine(stderr)}`);
  const unseen: string[] = [];
  for (const patched of release.patches) {
    const markers = markersOf(patched);
    const found = findingOf(answer, patched);
    const inert = inertFault(answer, patched);
    if (inert !== undefined) throw new Error(inert);
    if (markers.length === 0) continue;
    // The import held without GPU and engine before: what keeps it from that here is no fault of the patch.
    const error = importError(found);
    if (error !== undefined) unseen.push(`; the marker of ${patched.target} was not seen again: ${error}`);
    else {
      const fault = markerFault(found, patched.target, markers);
      if (fault !== undefined) throw new Error(fault);
    }
  }
  return `the patches are in effect in the running container${unseen.join('')}`;
}

/**
 * Why the process does not have the patched files under their targets: looked at from the host, by its mounts. A file
 * that was replaced since its start is still the old one for it.
 */
export async function mountedPatchFault(
  outside: Outside,
  release: Release,
  pid: number,
): Promise<string | undefined> {
  if (release.patches.length === 0) return undefined;
  const mounts = (await outside.readText(`/proc/${pid}/mountinfo`)) ?? '';
  for (const patched of release.patches) {
    const { target } = patched;
    const path = patchedPath(release, patched);
    const mount = mounts
      .split('\n')
      .findLast((line) => line.split(' ')[4] === target)
      ?.split(' ');
    if (mount === undefined) return `nothing is mounted over ${target}`;
    if (!mount[5]?.split(',').includes('ro')) return `${target} is not mounted read-only`;
    const seen = `/proc/${pid}/root${target}`;
    const [inside, onHost] = [await outside.statusOf(seen), await outside.statusOf(path)];
    if (inside === undefined) return `${target} is not there for process ${pid}`;
    if (inside.inode !== onHost?.inode || inside.device !== onHost.device) {
      return `${target} is not ${path}: that was ${onHost === undefined ? 'removed' : 'replaced'} after the engine's start`;
    }
    const actual = await hashOf(outside, seen);
    if (actual !== patched.patchedSha256) {
      return `${target} has sha256 ${actual ?? 'none'}, wanted ${patched.patchedSha256}`;
    }
  }
  return undefined;
}

async function probeThrowAway(
  outside: Outside,
  release: Release,
  mounts: readonly string[],
): Promise<ProbeAnswer> {
  const options = unitTextOf(release).container?.options ?? [];
  const { exitCode, stdout, stderr } = await runThrowAway(outside, {
    image: release.image,
    entrypoint: 'python3',
    options: [...options.filter((option) => /^--(?:env|security-opt)=/.test(option)), ...mounts],
    arguments: probeWords({
      words: [...(await imageEntrypoint(outside, release.image)), ...release.arguments],
      files: release.patches.map((patched) => probed(patched, true)),
      limitSeconds: importSeconds,
    }),
  });
  const answer = probeAnswerOf(stdout);
  if (answer === undefined) {
    throw new Error(`the image's Python does not answer (exit ${exitCode}): ${lastLine(stderr)}`);
  }
  return answer;
}

/** As the unit has them. */
function patchMounts(release: Release): readonly string[] {
  const volumes = unitTextOf(release).container?.values('--volume') ?? [];
  const targets = release.patches.map(({ target }) => target);
  return volumes
    .filter((volume) => targets.includes(volume.split(':')[1] ?? ''))
    .map((volume) => `--volume=${volume}`);
}

function probed(patched: PatchedFile, imports: boolean): ProbedFile {
  return { target: patched.target, imports, markers: markersOf(patched) };
}

/** Of the patches in effect: what an earlier one of a file says holds after the later ones too. */
function markersOf({ diffs }: PatchedFile): readonly string[] {
  return diffs.flatMap(({ text }) => parsePatchFile(text).patch?.header.marker ?? []);
}

function findingOf({ files }: ProbeAnswer, { target }: PatchedFile): ProbeFinding | undefined {
  return files.find((file) => file.target === target);
}

/** Why Python would run other code than that of the patched file; undefined: it would run this. */
function inertFault(answer: ProbeAnswer, patched: PatchedFile): string | undefined {
  const { python } = answer;
  const { target, patchedSha256 } = patched;
  const found = findingOf(answer, patched);
  const inert = (reason: string): string => `the patch of ${target} would be mounted and not used: ${reason}`;
  const who = `Python ${python.version} (${python.executable})`;
  if (found === undefined) return inert(`${who} ended before it looked at it`);
  if (found.realPath !== target)
    return inert(`the path leads over a link, the file is ${found.realPath}; correct Target`);
  if (found.kind !== 'file')
    return inert(`it is ${found.kind === 'absent' ? 'absent' : `a ${found.kind}`} there`);
  if (found.sha256 !== patchedSha256) {
    return inert(`the container sees sha256 ${found.sha256}, wanted ${patchedSha256}`);
  }
  if (found.module == null) {
    return inert(
      found.shadowedBy != null
        ? `${who} imports this module from ${found.shadowedBy}; correct Target`
        : `${who} reads no folder that has it: ${python.path.filter((entry) => entry !== '').join(', ')}; correct Target`,
    );
  }
  if (found.codeError != null) return inert(`${who} cannot compile it: ${found.codeError}`);
  if (found.isCompiledFrom === true) return undefined;
  const { cache } = found;
  const remedy =
    'with PYTHONPYCACHEPREFIX=/tmp/pycache in slot:shape.environment Python compiles the sources itself';
  if (cache?.kind === 'unchecked-hash') {
    return inert(`${cache.path} is unchecked byte code, ${who} never looks at its source; ${remedy}`);
  }
  return inert(
    `${who} takes the old byte code ${cache?.path ?? ''}, whose source had the same size and time; give the file on the host another time (touch), or ${remedy}`,
  );
}

function importError(found: ProbeFinding | undefined): string | undefined {
  if (found?.imported === undefined) return 'Python ended before the import';
  const { error, file } = found.imported;
  if (error != null) return error;
  return file === found.target ? undefined : `it was imported from ${file}`;
}

/** Without what differs from run to run. */
function plain(error: string): string {
  return error.replaceAll(/0x[0-9a-f]+/g, '0x…');
}

function markerFault(
  found: ProbeFinding | undefined,
  target: string,
  markers: readonly string[],
): string | undefined {
  const answers = found?.imported?.markers ?? [];
  const at = markers.findIndex((_, index) => answers[index] !== true);
  return at === -1
    ? undefined
    : `${target}: its marker does not hold in the imported module: ${markers[at]} (${answers[at]})`;
}

function lastLine(text: string): string {
  return text.trim().split('\n').pop() ?? '';
}
