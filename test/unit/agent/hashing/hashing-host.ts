import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Hashing, HashResult } from '../../../../agent/hashing/hash-files.ts';
import { type HashContext, readRequested } from '../../../../agent/hashing/hash-job.ts';
import { type Outside, realOutside } from '../../../../agent/outside.ts';

export const service = 'frank-archon';

/** As `hashFiles` of the host program, without the start of threads. */
export function inThisThread(
  paths: readonly string[],
  onEnd: (path: string, result: HashResult) => void,
): Hashing {
  for (const path of paths) {
    try {
      onEnd(path, { sha256: createHash('sha256').update(readFileSync(path)).digest('hex') });
    } catch (error) {
      onEnd(path, { error: (error as Error).message });
    }
  }
  return { ended: Promise.resolve(), bytesRead: () => 0, current: () => [] };
}

/** Stands for the death of the unit that reads. */
export class Killed extends Error {}

/**
 * A host whose payloads are real files and whose state lies in a folder of the test's: systemd-run starts the reading
 * in this process.
 */
export class HashingHost {
  readonly folder = mkdtempSync(join(tmpdir(), 'slot-hashing-'));
  readonly payload = join(this.folder, 'payload');
  readonly said: string[] = [];
  /** Arguments of each unit that was started. */
  readonly units: (readonly string[])[] = [];
  /** Files that were read, in the order in which they were begun. */
  readonly read: string[] = [];
  /** Replaces what the reading, and whoever asks for it, gets of the outside. */
  faults: Partial<Outside> = {};
  #running: { readonly unit: string; readonly description: string } | undefined;

  constructor() {
    mkdirSync(this.payload);
  }

  get outside(): Outside {
    const place = (path: string) =>
      /^\/(?:run|var\/lib)\/slot\b/.test(path) ? join(this.folder, path) : path;
    return {
      ...realOutside,
      readText: (path) => realOutside.readText(place(path)),
      writeDurably: (path, text) => realOutside.writeDurably(place(path), text),
      removeDurably: (path) => realOutside.removeDurably(place(path)),
      append: (path, text) => realOutside.append(place(path), text),
      makeFolder: (path) => realOutside.makeFolder(place(path)),
      hashFiles: (paths, onEnd) => {
        this.read.push(...paths.map((path) => path.slice(this.payload.length + 1)));
        return inThisThread(paths, onEnd);
      },
      // What was written this very moment has settled.
      now: () => new Date(Date.now() + 1000),
      // No test waits for a clock.
      sleep: () => new Promise((resolve) => setTimeout(resolve, 1)),
      run: async (command, args) => {
        const answer = (stdout: string) => ({ exitCode: 0, stdout, stderr: '' });
        if (command === 'systemctl') {
          const isAsked = this.#running !== undefined && args[1] === this.#running.unit;
          return answer(
            isAsked
              ? `ActiveState=active\nDescription=${this.#running?.description}`
              : `ActiveState=inactive\nDescription=${args[1]}`,
          );
        }
        if (command !== 'systemd-run') throw new Error(`unknown: ${command}`);
        if (this.#running !== undefined)
          return { exitCode: 1, stdout: '', stderr: 'Unit was already loaded' };
        this.units.push(args);
        const optionOf = (option: string) =>
          args.find((word) => word.startsWith(`--${option}=`))?.slice(option.length + 3) ?? '';
        this.start(optionOf('unit'), optionOf('description'), optionOf('request'));
        return answer('');
      },
      ...this.faults,
    };
  }

  get context(): HashContext {
    return { outside: this.outside, service, say: async (line) => void this.said.push(line) };
  }

  start(unit: string, description: string, request: string): void {
    this.#running = { unit, description };
    readRequested(this.outside, service, request)
      .catch((error) => {
        if (!(error instanceof Killed)) this.said.push(`the unit failed: ${error}`);
      })
      .finally(() => {
        this.#running = undefined;
      });
  }

  /** Names of the files in a folder of the host's state. */
  stateFiles(path: string): string[] {
    return readdirSync(join(this.folder, path));
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
