import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { z } from 'zod';

/** A conversation with QEMU's machine protocol: one command at a time, events skipped. */
export interface Qmp {
  /** Runs a command and gives its `return` value; throws with QEMU's own words when it refuses. */
  execute(command: string, commandArguments?: Record<string, unknown>): Promise<unknown>;
  close(): void;
}

const reply = z.object({
  return: z.unknown().optional(),
  error: z.object({ class: z.string(), desc: z.string() }).optional(),
  event: z.string().optional(),
  QMP: z.unknown().optional(),
});

/** Connects to the socket that QEMU listens on; throws the connection's error (ENOENT, ECONNREFUSED) while it does not yet. */
export async function openQmp(socketPath: string): Promise<Qmp> {
  const socket = connect(socketPath);
  await once(socket, 'connect');
  const lines = createInterface({ input: socket })[Symbol.asyncIterator]();

  async function execute(command: string, commandArguments: Record<string, unknown> = {}): Promise<unknown> {
    socket.write(`${JSON.stringify({ execute: command, arguments: commandArguments })}\n`);
    for (;;) {
      const line = await lines.next();
      if (line.done) throw new Error(`QEMU closed ${socketPath} before it answered "${command}"`);
      const answer = reply.parse(JSON.parse(line.value));
      if (answer.error) throw new Error(`QEMU refused "${command}": ${answer.error.desc}`);
      if (answer.event === undefined && answer.QMP === undefined) return answer.return;
    }
  }

  await execute('qmp_capabilities');
  return { execute, close: () => socket.destroy() };
}
