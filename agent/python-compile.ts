import { deflateSync } from 'node:zlib';
import type { CompileAnswer, CompileRequest } from '../shape/image-files.ts';
import type { Outside } from './outside.ts';
import { imageState } from './podman.ts';
import { runThrowAway } from './throw-away.ts';

/** The kernel takes 128 KiB in a word of a command line. */
const mostWordBytes = 120 * 1024;

/** The message and nothing else on standard output; a Python that cannot be asked ends otherwise. */
const program = `
import base64, sys, zlib
source = zlib.decompress(base64.b64decode(sys.argv[2]))
try:
    compile(source, sys.argv[1], "exec", dont_inherit=True)
except (SyntaxError, ValueError) as error:
    print(f"{error} (Python {sys.version.split()[0]} of the image)")
`;

/** Whether the Python of an image takes a source text, asked in a throw-away container: nothing of it runs. */
export async function compileInImage(
  outside: Outside,
  { image, target, source }: CompileRequest,
): Promise<CompileAnswer> {
  const state = await imageState(outside, image);
  if (state !== 'present') return { kind: 'not asked', reason: `${image} is ${state} on this host` };
  const word = deflateSync(Buffer.from(source, 'base64')).toString('base64');
  if (word.length > mostWordBytes) {
    return { kind: 'not asked', reason: `${target} is too large to be handed to a container` };
  }
  const { exitCode, stdout, stderr } = await runThrowAway(outside, {
    image,
    entrypoint: 'python3',
    arguments: ['-I', '-c', program, target, word],
  });
  if (exitCode !== 0) {
    const reason = stderr.trim().split('\n').at(-1) ?? '';
    return { kind: 'not asked', reason: `python3 of the image ends with ${exitCode}: ${reason}` };
  }
  const fault = stdout.trim();
  return fault === '' ? { kind: 'compiles' } : { kind: 'does not compile', reason: fault };
}
