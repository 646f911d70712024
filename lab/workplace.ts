import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { execa } from 'execa';
import type { Toolchain } from '../toolchain/prepare.ts';
import type { LabHost } from './host.ts';
import {
  type Change,
  hostChanges,
  hostStack,
  type LabImages,
  laidOver,
  type ShapeStack,
  shapeChanges,
  shapeStacks,
} from './overlay.ts';

const project = join(import.meta.dirname, '..');

export interface PulumiRun {
  readonly exitCode: number;
  /** Standard output and standard error as they came. */
  readonly output: string;
}

export interface PromptedUp {
  /** Resolves when the question is on the screen. */
  asks(): Promise<void>;
  answerYes(): Promise<PulumiRun>;
}

/**
 * An operator's desk for one lab host: the stack files' copies with the lab's differences, a backend of its
 * own, and the real engine of Pulumi. The operator's own files are read and never written.
 */
export class Workplace {
  readonly folder: string;
  readonly lab: LabHost;
  readonly #toolchain: Toolchain;
  readonly #images: LabImages;
  readonly #backend: string;

  private constructor(folder: string, lab: LabHost, toolchain: Toolchain, images: LabImages) {
    this.folder = folder;
    this.lab = lab;
    this.#toolchain = toolchain;
    this.#images = images;
    this.#backend = join(folder, 'backend');
  }

  static async create(lab: LabHost, toolchain: Toolchain, images: LabImages): Promise<Workplace> {
    const folder = await mkdtemp(join(tmpdir(), 'slot-workplace-'));
    const workplace = new Workplace(folder, lab, toolchain, images);
    await mkdir(workplace.#backend);
    await symlink(join(project, 'models'), join(folder, 'models'));
    // `stack init` writes its salt beside this file and not into the operator's stack files.
    await writeFile(join(folder, 'Pulumi.yaml'), 'name: slot\nruntime: nodejs\n');
    for (const stack of [hostStack, ...shapeStacks] as const) {
      const { exitCode, output } = await workplace.run(['stack', 'init', stack], folder);
      if (exitCode !== 0) throw new Error(`pulumi stack init ${stack}: ${output}`);
      await workplace.lay(stack);
    }
    return workplace;
  }

  /** Writes the copy of a stack's file anew, with the lab's differences and the given ones on top. */
  async lay(stack: typeof hostStack | ShapeStack, changes: readonly Change[] = []): Promise<void> {
    const { lab, folder } = this;
    const common = stack === hostStack ? hostChanges(lab) : shapeChanges(stack, lab, this.#images, folder);
    const salt = (await readFile(this.configFile(stack), 'utf8')).match(/^encryptionsalt: (.*)$/m)?.[1];
    const text = laidOver(await readFile(join(project, `Pulumi.${stack}.yaml`), 'utf8'), [
      ...common,
      ...changes,
      [['encryptionsalt'], salt],
    ]);
    await writeFile(this.configFile(stack), text);
  }

  configFile(stack: string): string {
    return join(this.folder, `Pulumi.${stack}.yaml`);
  }

  preview(stack: string, ...more: string[]): Promise<PulumiRun> {
    return this.run(['preview', ...this.#of(stack), '--diff', ...more]);
  }

  up(stack: string, ...more: string[]): Promise<PulumiRun> {
    return this.run(['up', '--yes', ...this.#of(stack), ...more]);
  }

  destroy(stack: string, ...more: string[]): Promise<PulumiRun> {
    return this.run(['destroy', '--yes', ...this.#of(stack), ...more]);
  }

  /** An `up` that goes on in the background. */
  startUp(stack: string, ...more: string[]) {
    const args = ['up', ...this.#of(stack), ...more];
    return execa(this.#toolchain.pulumi, args, { ...this.#options(project), stdin: 'ignore' });
  }

  /** An `up` at a terminal, as a person runs it: it shows the preview and asks. */
  startUpAtPrompt(stack: string): PromptedUp {
    const command = [this.#toolchain.pulumi, 'up', ...this.#of(stack)].join(' ');
    const run = execa('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
      ...this.#options(project),
      stdin: 'pipe',
    });
    let shown = '';
    let ended = false;
    run.finally(() => {
      ended = true;
    });
    run.all.on('data', (text: Buffer) => {
      shown += text.toString();
    });
    return {
      async asks() {
        while (!shown.includes('Do you want to perform this update')) {
          if (ended) throw new Error(`no prompt came: ${shown}`);
          await setTimeout(100);
        }
      },
      async answerYes() {
        // The choice is narrowed by typing, then taken.
        run.stdin.write('yes');
        await setTimeout(500);
        run.stdin.write('\r');
        const { exitCode } = await run;
        return { exitCode: exitCode ?? 255, output: shown };
      },
    };
  }

  async run(args: readonly string[], cwd: string = project): Promise<PulumiRun> {
    const result = await execa(this.#toolchain.pulumi, ['--non-interactive', ...args], {
      ...this.#options(cwd),
      stdin: 'ignore',
    });
    return { exitCode: result.exitCode ?? 255, output: result.all };
  }

  /** Removes the folder; the lab host is its creator's to end. */
  async close(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  #of(stack: string): string[] {
    return ['--stack', stack, '--config-file', this.configFile(stack)];
  }

  #options(cwd: string) {
    return {
      cwd,
      reject: false,
      all: true,
      env: {
        ...this.#toolchain.env,
        PULUMI_BACKEND_URL: `file://${this.#backend}`,
        PULUMI_CONFIG_PASSPHRASE: '',
      },
    } as const;
  }
}
