import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { realOutside } from '../../../agent/outside.ts';

let server: Server | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

async function serve(listener: RequestListener): Promise<string> {
  server = createServer(listener);
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/models`;
}

describe('a request to the engine', () => {
  it('gives status and whole body, whatever the status', async () => {
    const url = await serve((_, response) => void response.writeHead(503).end('lädt'));
    expect(await realOutside.request('GET', url, undefined, 2)).toEqual({ status: 503, body: 'lädt' });
  });

  it('carries its content as JSON', async () => {
    const url = await serve(async (asked, response) => {
      let content = '';
      for await (const part of asked) content += part;
      response.end(`${asked.method} ${asked.url} ${asked.headers['content-type']} ${content}`);
    });
    const { body } = await realOutside.request('POST', url, { prompt: '2 + 2 = …' }, 2);
    expect(body).toBe('POST /v1/models application/json {"prompt":"2 + 2 = …"}');
  });

  it('says that nothing answered, and why', async () => {
    const url = await serve(() => undefined);
    server?.close();
    await expect(realOutside.request('GET', url, undefined, 2)).rejects.toThrow(
      /^GET http:\S+: no answer within 2 s \(connect ECONNREFUSED/,
    );
  });

  it('is given up when no headers come', async () => {
    const url = await serve(() => undefined);
    await expect(realOutside.request('GET', url, undefined, 0.1)).rejects.toThrow('no answer within 0.1 s');
  });

  it('is given up when the body does not end', async () => {
    const url = await serve((_, response) => void response.writeHead(200).write('{'));
    await expect(realOutside.request('GET', url, undefined, 0.2)).rejects.toThrow(
      'headers with status 200, but not the whole body within 0.2 s',
    );
  });

  it('takes no body that breaks off for a whole one', async () => {
    const url = await serve((_, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{"data":[]}');
      setTimeout(() => response.destroy(), 20);
    });
    await expect(realOutside.request('GET', url, undefined, 2)).rejects.toThrow('not the whole body');
  });
});
