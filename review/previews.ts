import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { isMap, parseDocument } from 'yaml';
import { draftedShape } from '../components/planned-shape.ts';
import { stacksIn } from '../components/stack-list.ts';
import { describe, prepareToolchain, type Toolchain } from '../toolchain/prepare.ts';

const project = join(import.meta.dirname, '..');

/** Left to the operator's machine: its stack files are written anew, its notes of previews are its own. */
const ownToThisRun = /^Pulumi\..+\.ya?ml$|^\.slot$|^\.git$/;

/**
 * `pulumi preview` of every shape with a backend and a passphrase that are thrown away, as a pull request shows it:
 * the operator's state, secrets and keys are not needed. A host that cannot be reached gives the static plan.
 *
 * @returns the exit code: 1 where a preview fails
 */
async function main(): Promise<number> {
  const toolchain = await prepareToolchain({ progress: (line) => console.error(line) });
  console.log(describe(toolchain.report));
  const folder = await mkdtemp(join(tmpdir(), 'slot-previews-'));
  try {
    const pulumi = await setUp(folder, toolchain);
    let exitCode = 0;
    for (const stack of stacksIn(project, 'shape')) {
      const { missing } = draftedShape(project, stack);
      if (missing.length > 0) {
        const keys = missing.map(({ file, key }) => `${file}: ${key}`).join(', ');
        console.log(`\n${stack}: no preview, the operator has not supplied ${keys}`);
        continue;
      }
      console.log(`\n${stack}`);
      const shown = await previewOf(pulumi, folder, stack);
      console.log(shown.output);
      exitCode = Math.max(exitCode, shown.exitCode === 0 ? 0 : 1);
    }
    return exitCode;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

type Pulumi = (...words: string[]) => Promise<{ readonly exitCode: number; readonly output: string }>;

/** A project folder that is this one but for stack files, and what runs `pulumi` in it. */
async function setUp(folder: string, toolchain: Toolchain): Promise<Pulumi> {
  for (const name of await readdir(project)) {
    if (!ownToThisRun.test(name)) await symlink(join(project, name), join(folder, name));
  }
  for (const stack of stacksIn(project, 'host')) await writeStackFile(folder, stack);
  const backend = join(folder, 'backend');
  await mkdir(backend);
  const env = { ...toolchain.env, PULUMI_BACKEND_URL: `file://${backend}`, PULUMI_CONFIG_PASSPHRASE: '' };
  return async (...words) => {
    const result = await execa(toolchain.pulumi, ['--non-interactive', ...words], {
      cwd: folder,
      reject: false,
      all: true,
      stdin: 'ignore',
      env,
    });
    return { exitCode: result.exitCode ?? 255, output: result.all };
  };
}

async function previewOf(pulumi: Pulumi, folder: string, stack: string): ReturnType<Pulumi> {
  const secrets = await writeStackFile(folder, stack);
  const steps = [
    ['stack', 'init'],
    ...secrets.map((name) => [
      'config',
      'set',
      '--secret',
      '--path',
      `slot:secrets.${name}`,
      'not the value',
    ]),
  ];
  for (const words of steps) {
    const done = await pulumi(...words, '--stack', stack);
    if (done.exitCode !== 0) return done;
  }
  return pulumi('preview', '--diff', '--stack', stack);
}

/**
 * The stack's file without what belongs to the operator's backend and machine.
 *
 * @returns the names of its secrets
 */
async function writeStackFile(folder: string, stack: string): Promise<readonly string[]> {
  const name = `Pulumi.${stack}.yaml`;
  const document = parseDocument(await readFile(join(project, name), 'utf8'));
  const secrets = document.getIn(['config', 'slot:secrets']);
  for (const path of [
    ['encryptionsalt'],
    ['config', 'slot:secrets'],
    ['config', 'slot:host', 'privateKeyPath'],
  ]) {
    if (document.hasIn(path)) document.deleteIn(path);
  }
  await writeFile(join(folder, name), document.toString());
  return isMap(secrets) ? secrets.items.map(({ key }) => String(key)) : [];
}

process.exitCode = await main();
