import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
}

export interface Diagnostic {
  /** Counted from 0. */
  readonly line: number;
  readonly message: string;
}

/** The language server of YAML that editors run, spoken to as an editor does. */
export async function startLanguageServer(folder: string) {
  const program = createRequire(import.meta.url).resolve('yaml-language-server/bin/yaml-language-server');
  const server = spawn(process.execPath, [program, '--stdio'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting = new Map<number | string, (value: unknown) => void>();
  let calls = 0;

  const send = (message: object): void => {
    const text = JSON.stringify({ jsonrpc: '2.0', ...message });
    server.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  };
  const ask = <T>(method: string, params: object): Promise<T> => {
    calls += 1;
    const answer = answerTo<T>(calls);
    send({ id: calls, method, params });
    return answer;
  };
  const answerTo = <T>(key: number | string): Promise<T> =>
    new Promise((resolve) => waiting.set(key, resolve as (value: unknown) => void));

  const receive = ({ id, method, params, result }: Message): void => {
    if (method === 'textDocument/publishDiagnostics') {
      const { uri, diagnostics } = params as { uri: string; diagnostics: LspDiagnostic[] };
      waiting.get(uri)?.(diagnostics.map(({ range, message }) => ({ line: range.start.line, message })));
    } else if (method !== undefined && id !== undefined) {
      // It asks for its settings: the defaults.
      send({ id, result: method === 'workspace/configuration' ? [{}, {}, {}, {}, {}] : null });
    } else if (id !== undefined) {
      waiting.get(id)?.(result);
    }
  };
  let received = Buffer.alloc(0);
  server.stdout.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    for (;;) {
      const head = received.indexOf('\r\n\r\n');
      const length = Number(/Content-Length: (\d+)/.exec(received.subarray(0, head).toString())?.[1]);
      if (head < 0 || received.length < head + 4 + length) return;
      const body = received.subarray(head + 4, head + 4 + length).toString();
      received = received.subarray(head + 4 + length);
      receive(JSON.parse(body) as Message);
    }
  });

  await ask('initialize', {
    processId: process.pid,
    rootUri: pathToFileURL(folder).href,
    workspaceFolders: null,
    capabilities: { textDocument: { publishDiagnostics: {}, completion: {} } },
  });
  send({ method: 'initialized', params: {} });

  return {
    /** What the editor marks in a file of this text. */
    async diagnose(path: string, text: string): Promise<readonly Diagnostic[]> {
      const uri = pathToFileURL(path).href;
      const answer = answerTo<readonly Diagnostic[]>(uri);
      const textDocument = { uri, languageId: 'yaml', version: 1, text };
      send({ method: 'textDocument/didOpen', params: { textDocument } });
      return answer;
    },
    /** What it offers at a place of a file that was diagnosed; line and column are counted from 0. */
    async complete(path: string, line: number, character: number): Promise<readonly string[]> {
      const textDocument = { uri: pathToFileURL(path).href };
      const { items } = await ask<{ items: { label: string }[] }>('textDocument/completion', {
        textDocument,
        position: { line, character },
      });
      return items.map(({ label }) => label);
    },
    stop: (): boolean => server.kill(),
  };
}

interface LspDiagnostic {
  readonly range: { readonly start: { readonly line: number } };
  readonly message: string;
}
