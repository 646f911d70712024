import { spawn } from 'node:child_process';
import { askToCompile } from './ask.ts';
import type { PatchedShape } from './shapes.ts';

const program = `
import sys
try:
    compile(sys.stdin.buffer.read(), sys.argv[1], "exec", dont_inherit=True)
except (SyntaxError, ValueError) as error:
    print(f"{error} (Python {sys.version.split()[0]} of this machine)")
`;

export type Compiled =
  | { readonly kind: 'compiles' }
  | { readonly kind: 'does not compile'; readonly reason: string }
  | { readonly kind: 'not known'; readonly reason: string };

/**
 * Whether a source text is Python. What this machine's Python does not take, the image's may: it is asked then, as
 * where there is none here.
 */
export async function compiled(
  { host, image }: PatchedShape,
  target: string,
  source: Uint8Array,
): Promise<Compiled> {
  const here = await compiledHere(target, source);
  if (here === '') return { kind: 'compiles' };
  const answer = await askToCompile(host, { image, target, source: Buffer.from(source).toString('base64') });
  if (answer.kind !== 'not asked') return answer;
  return here === undefined
    ? { kind: 'not known', reason: answer.reason }
    : { kind: 'does not compile', reason: here };
}

/** Why it is no Python, or nothing where it is; undefined: there is no Python here to ask. */
function compiledHere(target: string, source: Uint8Array): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn('python3', ['-I', '-c', program, target], { stdio: ['pipe', 'pipe', 'ignore'] });
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    child.on('error', () => resolve(undefined));
    child.on('close', (code) => resolve(code === 0 ? said.trim() : undefined));
    child.stdin.on('error', () => undefined).end(source);
  });
}
