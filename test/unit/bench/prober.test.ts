import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { outageSeconds, Prober } from '../../../lab/bench/prober.ts';

const answer = (atMs: number, ...names: string[]) => ({ atMs, names });

describe('the outage', () => {
  it('is from the last answer of the old engine to the first of the new one', () => {
    const answers = [answer(0, 'old'), answer(10, 'old'), answer(2510, 'new'), answer(2520, 'new')];
    expect(outageSeconds(answers, 'old', 'new')).toBe(2.5);
  });

  it('goes on while something answers that is neither', () => {
    expect(outageSeconds([answer(0, 'old'), answer(500, 'other'), answer(900, 'new')], 'old', 'new')).toBe(
      0.9,
    );
  });

  it('is not known when the new engine never answered', () => {
    expect(() => outageSeconds([answer(0, 'old')], 'old', 'new')).toThrow('no good answer of new');
  });

  it('is not known when the old engine never answered', () => {
    expect(() => outageSeconds([answer(0, 'new')], 'old', 'new')).toThrow('no good answer of old');
  });

  it('is not known when the old engine came back', () => {
    expect(() =>
      outageSeconds([answer(0, 'old'), answer(9, 'new'), answer(20, 'old')], 'old', 'new'),
    ).toThrow('old answered after the first answer of new');
  });
});

describe('the prober', () => {
  let server: Server | undefined;
  let prober: Prober | undefined;

  afterEach(() => {
    prober?.stop();
    server?.closeAllConnections();
    server?.close();
  });

  async function probe(listener: RequestListener): Promise<Prober> {
    server = createServer(listener);
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
    prober = new Prober(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    return prober;
  }

  const models = (...names: string[]) => JSON.stringify({ data: names.map((id) => ({ id })) });

  it('takes every name of an answer', async () => {
    const client = await probe((_, response) => void response.end(models('glm', 'wire')));
    await client.sees('wire', 5);
    expect(client.answers.at(-1)?.names).toEqual(['glm', 'wire']);
  });

  it('does not take an error for an answer', async () => {
    const client = await probe((_, response) => void response.writeHead(503).end(models('glm')));
    await expect(client.sees('glm', 0.2)).rejects.toThrow('did not list glm within 0.2 s');
  });

  it('does not take an answer that breaks off for one', async () => {
    const client = await probe((_, response) => {
      response.writeHead(200, { 'content-length': 1000 }).write(models('glm'));
      setTimeout(() => response.destroy(), 5);
    });
    await expect(client.sees('glm', 0.2)).rejects.toThrow('did not list glm');
  });

  it('goes on while an engine hangs', async () => {
    let asked = 0;
    const client = await probe((_, response) => {
      asked += 1;
      if (asked > 3) response.end(models('glm'));
    });
    await client.sees('glm', 5);
  });
});
