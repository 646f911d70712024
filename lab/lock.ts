import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { labCache } from './cache.ts';

const RETRY_MS = 100;

/**
 * Runs `work` while no other process on this machine that uses the same lab cache holds the lock `name`; waits for
 * its turn without a limit. The lock is a socket in Linux' abstract namespace: the kernel drops it with the process,
 * however that ends, so there are no stale locks.
 */
export async function withLock<T>(name: string, work: () => Promise<T>): Promise<T> {
  const held = await acquire(name);
  try {
    return await work();
  } finally {
    await new Promise((resolve) => held.close(resolve));
  }
}

async function acquire(name: string): Promise<Server> {
  const path = `\0slot-lab-${createHash('sha256').update(`${labCache()}\n${name}`).digest('hex').slice(0, 32)}`;
  for (;;) {
    const server = await listen(path);
    if (server) return server;
    await setTimeout(RETRY_MS);
  }
}

function listen(path: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
    );
    server.listen({ path }, () => resolve(server));
  });
}
