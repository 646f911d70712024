import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, cp, link, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { labCache } from '../cache.ts';
import { withLock } from '../lock.ts';
import { baseLayer, PYTHON, runPython, zeroTimes } from './base-layer.ts';
import { digestOf, type Layer, packLayer } from './layer.ts';

/** Where the image keeps Python packages, as Debian-based engine images do; patch targets are below `vllm/`. */
export const SITE_PACKAGES = `/usr/local/lib/${PYTHON}/dist-packages`;

/** How the image names its one manifest. */
const REFERENCE = 'lab';

const SERVER = join(import.meta.dirname, 'server');

const ENTRYPOINTS = {
  vllm: { path: ['vllm', 'serve'], module: 'vllm.entrypoints.cli.main' },
  r9v: { path: ['r9v-server'], module: 'r9v.server' },
} as const;

export interface EngineImageOptions {
  /** Which engine the image's entrypoint starts; both are in every image. Default `vllm`. */
  readonly engine?: keyof typeof ENTRYPOINTS;
  /** Any text: another one gives an image that behaves the same and has another digest. Default empty. */
  readonly variant?: string;
  /** Files of the Python packages, relative to `SITE_PACKAGES`, with other content; `null` leaves one out. Default none. */
  readonly files?: Readonly<Record<string, string | null>>;
  /**
   * How Python trusts the image's byte code: `timestamp`, as pip installs it, or `unchecked-hash`, which makes every
   * file mounted over a source inert. Default `timestamp`.
   */
  readonly byteCode?: 'timestamp' | 'unchecked-hash';
  /** Called with a line about each step; default: none is told. */
  readonly progress?: (line: string) => void;
}

export interface EngineImage {
  /** An OCI image layout in a folder. Never written to again. */
  readonly ociLayout: string;
  /** The image in it as skopeo and podman name it: `oci:<folder>:<tag>`. */
  readonly reference: string;
  /** `sha256:…` of the manifest, which a registry keeps when the image is copied there by skopeo. */
  readonly digest: string;
}

/**
 * The lab engine's image, made without a container engine. The first call makes the base (see `baseLayer`); another
 * engine, variant or server costs about a second; a call for a known image reads the cache.
 */
export async function buildEngineImage(options: EngineImageOptions = {}): Promise<EngineImage> {
  const { engine = 'vllm', variant = '', files = {}, byteCode = 'timestamp', progress = () => {} } = options;
  const base = await baseLayer(progress);
  const key = createHash('sha256')
    .update(JSON.stringify([base.layer.digest, engine, variant, files, byteCode]))
    .update(await readFile(import.meta.filename))
    .update(JSON.stringify(await serverFiles()))
    .digest('hex')
    .slice(0, 16);
  const folder = join(labCache(), `engine-image-${key}`);
  await withLock(`engine-image-${key}`, async () => {
    if (existsSync(folder)) return;
    progress(`lab engine image: ${engine}${variant && `, variant ${variant}`}`);
    const unfinished = await mkdtemp(join(labCache(), 'unfinished-engine-image-'));
    try {
      const tree = join(unfinished, 'tree');
      await layOutServer(tree, files);
      await compile(base.tree, tree, byteCode);
      const layer = await packLayer(tree, join(unfinished, 'layer'));
      await writeLayout(join(unfinished, 'oci'), [base.layer, layer], ENTRYPOINTS[engine].path, variant);
      await rename(join(unfinished, 'oci'), folder);
    } finally {
      await rm(unfinished, { recursive: true, force: true });
    }
  });
  const index = JSON.parse(await readFile(join(folder, 'index.json'), 'utf8')) as OciIndex;
  const digest = index.manifests[0]?.digest;
  if (!digest) throw new Error(`${folder}/index.json names no manifest; remove the folder and build again`);
  return { ociLayout: folder, reference: `oci:${folder}:${REFERENCE}`, digest };
}

async function serverFiles(): Promise<readonly (readonly [string, string])[]> {
  const files: [string, string][] = [];
  for (const path of (await readdir(SERVER, { recursive: true })).sort()) {
    if (path.endsWith('.py')) files.push([path, await readFile(join(SERVER, path), 'utf8')]);
  }
  return files;
}

async function layOutServer(tree: string, changes: Readonly<Record<string, string | null>>): Promise<void> {
  const packages = join(tree, SITE_PACKAGES);
  await cp(SERVER, packages, { recursive: true, filter: (path) => !path.includes('__pycache__') });
  for (const [path, content] of Object.entries(changes)) {
    const target = join(packages, path);
    await mkdir(dirname(target), { recursive: true });
    await (content === null ? rm(target) : writeFile(target, content));
  }
  const commands = join(tree, 'usr/local/bin');
  await mkdir(commands, { recursive: true });
  for (const { path, module } of Object.values(ENTRYPOINTS)) {
    const command = join(commands, path[0]);
    await writeFile(command, `#!/usr/bin/${PYTHON}\nfrom ${module} import main\n\nmain()\n`);
    await chmod(command, 0o755);
  }
  await zeroTimes(tree);
}

/** With the base's own Python, which is why the tree is for a moment part of a copy of the base (by hard links). */
async function compile(base: string, tree: string, byteCode: string): Promise<void> {
  const root = await mkdtemp(join(labCache(), 'unfinished-engine-compile-'));
  try {
    await execa('cp', ['--archive', '--link', `${base}/.`, root]);
    await execa('cp', ['--archive', join(tree, 'usr/local/lib'), join(root, 'usr/local/')]);
    await runPython(root, ['-m', 'compileall', '-q', `--invalidation-mode=${byteCode}`, SITE_PACKAGES]);
    await execa('cp', ['--archive', join(root, 'usr/local/lib'), join(tree, 'usr/local/')]);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

interface OciDescriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly annotations?: Readonly<Record<string, string>>;
}

interface OciIndex {
  readonly schemaVersion: 2;
  readonly manifests: readonly OciDescriptor[];
}

async function writeLayout(
  folder: string,
  layers: readonly Layer[],
  entrypoint: readonly string[],
  variant: string,
): Promise<void> {
  const blobs = join(folder, 'blobs/sha256');
  await mkdir(blobs, { recursive: true });
  const blobPath = (digest: string): string => join(blobs, digest.slice('sha256:'.length));
  const put = async (mediaType: string, value: unknown): Promise<OciDescriptor> => {
    const text = JSON.stringify(value);
    const descriptor = { mediaType, digest: digestOf(text), size: Buffer.byteLength(text) };
    await writeFile(blobPath(descriptor.digest), text);
    return descriptor;
  };
  for (const layer of layers) await link(layer.path, blobPath(layer.digest));
  const created = '1970-01-01T00:00:00Z';
  const config = await put('application/vnd.oci.image.config.v1+json', {
    created,
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: {
      Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'PYTHONUNBUFFERED=1'],
      Entrypoint: entrypoint,
      WorkingDir: '/root',
      Labels: { 'slot.lab.engine': 'test double', ...(variant && { 'slot.lab.variant': variant }) },
    },
    rootfs: { type: 'layers', diff_ids: layers.map((layer) => layer.diffId) },
    history: layers.map(() => ({ created, created_by: 'slot lab engine' })),
  });
  const manifestType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = await put(manifestType, {
    schemaVersion: 2,
    mediaType: manifestType,
    config,
    layers: layers.map(({ digest, size }) => ({
      mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
      digest,
      size,
    })),
  });
  const index: OciIndex = {
    schemaVersion: 2,
    manifests: [{ ...manifest, annotations: { 'org.opencontainers.image.ref.name': REFERENCE } }],
  };
  await writeFile(join(folder, 'index.json'), JSON.stringify(index));
  await writeFile(join(folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
}
