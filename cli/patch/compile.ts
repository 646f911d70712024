import { spawn } from 'node:child_process';
import type { PatchedShape } from './shapes.ts';

const program = `
import sys
try:
    compile(sys.stdin.buffer.read(), sys.argv[1], "exec", dont_inherit=True)
except (SyntaxError, ValueError) as error:
    sys.exit(f"{error} (Python {sys.version.split()[0]})")
`;

/** Why the source is no Python; undefined: it is, or there is no Python here to ask. */
export async function compileFault(
  _shape: PatchedShape,
  target: string,
  source: Uint8Array,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn('python3', ['-I', '-c', program, target], { stdio: ['pipe', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    child.on('error', () => resolve(undefined));
    child.on('close', (code) => resolve(code === 0 ? undefined : said.trim().split('\n').at(-1)));
    child.stdin.on('error', () => undefined).end(source);
  });
}
