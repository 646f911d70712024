import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, lutimes, mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { labCache } from '../cache.ts';
import { debianMirror } from '../debian.ts';
import { withLock } from '../lock.ts';
import { type Layer, packLayer, readLayer } from './layer.ts';

const SUITE = 'trixie';

/** The Python that the suite above has: the folder of the image's own packages depends on it. */
export const PYTHON = 'python3.13';

/**
 * What is unpacked of which package; `.` is all of it. busybox gives the shell and the small commands, since others
 * of coreutils need libcrypto; it lacks printenv.
 */
const PACKAGES: Readonly<Record<string, string>> = {
  libc6: '.',
  zlib1g: '.',
  libexpat1: '.',
  [`lib${PYTHON}-minimal`]: '.',
  [`${PYTHON}-minimal`]: '.',
  [`lib${PYTHON}-stdlib`]: '.',
  'python3-minimal': '.',
  'busybox-static': '.',
  coreutils: './usr/bin/printenv',
};

/** Weight without use here; the modules in C need libraries that the image does not have. */
const LEFT_OUT = [
  'usr/share',
  'etc',
  `usr/lib/${PYTHON}/test`,
  `usr/lib/${PYTHON}/_pyrepl`,
  `usr/lib/${PYTHON}/pydoc_data`,
  `usr/lib/${PYTHON}/unittest`,
];
const LEFT_OUT_C_MODULES =
  /^(_bz2|_codecs_|_ctypes|_curses|_dbm|_hashlib|_lzma|_sqlite3|_ssl|_test|_uuid|_xx|readline|xx)/;

/** Compiled ahead, so that the first start is as fast as the second. */
const COMPILED_IMPORTS =
  'argparse, base64, hashlib, http.server, importlib, json, mmap, threading, traceback, zlib';

const FILES: Readonly<Record<string, string>> = {
  'etc/passwd': 'root:x:0:0:root:/root:/bin/sh\n',
  'etc/group': 'root:x:0:\n',
};
const FOLDERS = ['dev', 'proc', 'sys', 'run', 'root', 'tmp', 'usr/local/bin', 'var/tmp'];

export interface BaseLayer {
  readonly layer: Layer;
  /** The unpacked files of the layer: something can be compiled with its Python. Never written to. */
  readonly tree: string;
}

/**
 * The lower layer of every lab engine image: Python and a shell out of Debian's packages, about 40 MB unpacked.
 * Made on the first call (root, about 20 s, downloads 50 MB), found in the cache afterwards.
 */
export async function baseLayer(progress: (line: string) => void): Promise<BaseLayer> {
  const recipe = createHash('sha256')
    .update(
      JSON.stringify([
        SUITE,
        PACKAGES,
        LEFT_OUT,
        LEFT_OUT_C_MODULES.source,
        COMPILED_IMPORTS,
        FILES,
        FOLDERS,
      ]),
    )
    .digest('hex')
    .slice(0, 16);
  const folder = join(labCache(), `engine-base-${recipe}`);
  await withLock(`engine-base-${recipe}`, async () => {
    if (existsSync(folder)) return;
    if (process.getuid?.() !== 0)
      throw new Error('making the base of the lab engine image needs root (debootstrap)');
    await mkdir(labCache(), { recursive: true });
    const unfinished = await mkdtemp(join(labCache(), 'unfinished-engine-base-'));
    try {
      progress(`lab engine image: Debian ${SUITE}'s ${PYTHON} (about 20 s)`);
      const tree = join(unfinished, 'tree');
      await unpack(await download(join(unfinished, 'download')), tree);
      await trim(tree);
      await runPython(tree, ['-c', `import ${COMPILED_IMPORTS}`]);
      await packLayer(tree, join(unfinished, 'layer'));
      await rm(join(unfinished, 'download'), { recursive: true });
      await rename(unfinished, folder);
    } finally {
      await rm(unfinished, { recursive: true, force: true });
    }
  });
  return { layer: await readLayer(join(folder, 'layer')), tree: join(folder, 'tree') };
}

/** Downloads and verifies; returns the path of each package by name. */
async function download(target: string): Promise<Map<string, string>> {
  const downloads = join(labCache(), 'debs');
  await mkdir(downloads, { recursive: true });
  await mkdir(target);
  const ran = await execa(
    'debootstrap',
    [
      '--download-only',
      '--variant=minbase',
      `--cache-dir=${downloads}`,
      `--include=${Object.keys(PACKAGES).join(',')}`,
      SUITE,
      target,
      await debianMirror(),
    ],
    { stdin: 'ignore', all: true, reject: false },
  );
  if (ran.failed) {
    throw new Error(
      `debootstrap could not download Debian ${SUITE}: ${ran.all?.trim().split('\n').slice(-5).join('; ')}`,
    );
  }
  const archives = join(target, 'var/cache/apt/archives');
  const paths = new Map<string, string>();
  for (const file of await readdir(archives)) paths.set(file.split('_')[0] ?? file, join(archives, file));
  return paths;
}

async function unpack(packages: ReadonlyMap<string, string>, tree: string): Promise<void> {
  await mkdir(join(tree, 'usr'), { recursive: true });
  // Merged /usr, as Debian's base-files makes it: the packages' own files are below /usr already.
  for (const link of ['bin', 'lib', 'lib64', 'sbin']) {
    await mkdir(join(tree, 'usr', link), { recursive: true });
    await symlink(`usr/${link}`, join(tree, link));
  }
  for (const [name, part] of Object.entries(PACKAGES)) {
    const path = packages.get(name);
    if (!path) throw new Error(`debootstrap downloaded no package ${name} of Debian ${SUITE}`);
    const contents = await execa('dpkg-deb', ['--fsys-tarfile', path], {
      encoding: 'buffer',
      maxBuffer: 1 << 28,
    });
    await execa('tar', ['-x', '--keep-directory-symlink', '-C', tree, part], { input: contents.stdout });
  }
}

async function trim(tree: string): Promise<void> {
  for (const path of LEFT_OUT) await rm(join(tree, path), { recursive: true, force: true });
  const modules = join(tree, 'usr/lib', PYTHON, 'lib-dynload');
  for (const file of await readdir(modules)) {
    if (LEFT_OUT_C_MODULES.test(file)) await rm(join(modules, file));
  }
  for (const path of FOLDERS) await mkdir(join(tree, path), { recursive: true });
  for (const path of ['tmp', 'var/tmp']) await chmod(join(tree, path), 0o1777);
  await mkdir(join(tree, 'etc'));
  for (const [path, content] of Object.entries(FILES)) await writeFile(join(tree, path), content);
  const applets = await execa('chroot', [tree, '/usr/bin/busybox', '--list']);
  for (const applet of applets.stdout.split('\n')) {
    if (applet !== 'busybox') await symlink('busybox', join(tree, 'usr/bin', applet)).catch(ignoreExisting);
  }
  await zeroTimes(tree);
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

/** Runs the tree's Python in the tree, without this machine's environment: it may forbid to write byte code. */
export async function runPython(tree: string, args: readonly string[]): Promise<void> {
  await execa('chroot', [tree, `/usr/bin/${PYTHON}`, ...args], {
    stdin: 'ignore',
    env: { PATH: process.env.PATH },
    extendEnv: false,
  });
}

/** Byte code remembers the source's time: it must be the one that the layer will give to the file. */
export async function zeroTimes(tree: string): Promise<void> {
  for (const entry of await readdir(tree, { recursive: true })) await lutimes(join(tree, entry), 0, 0);
}
