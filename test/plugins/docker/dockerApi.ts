import { type ChildProcess, spawn } from 'node:child_process';
import http from 'node:http';
import { Duplex } from 'node:stream';

interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: string;
}
export interface Image {
  Id: string;
  RepoDigests?: string[];
}

/** Docker's interface at `ssh://user@host:port`, spoken over `docker system dial-stdio` by the user's own ssh. */
export class DockerApi {
  readonly #host: string;
  readonly #sshOptions: string[];
  #version = '';

  private constructor(host: string, sshOptions: string[]) {
    this.#host = host;
    this.#sshOptions = sshOptions;
  }

  static async connect(host: string, sshOptions: string[]): Promise<DockerApi> {
    const api = new DockerApi(host, sshOptions);
    try {
      const { headers } = await api.#ask('GET', '/_ping');
      if (headers['api-version']) api.#version = `/v${headers['api-version']}`;
    } catch (error) {
      throw new Error(
        'failed to create Docker client: Error pinging Docker server, please make sure that ' +
          `${host} is reachable and has a  '_ping' endpoint. Error: ${(error as Error).message}`,
      );
    }
    return api;
  }

  /** The image with this name, undefined when the host has none. */
  async find(name: string): Promise<Image | undefined> {
    const inspected = await this.#ask('GET', `${this.#version}/images/${name}/json`, [404]);
    if (inspected.status === 404) return undefined;
    const { Id } = JSON.parse(inspected.body) as Image;
    const listed = JSON.parse((await this.#ask('GET', `${this.#version}/images/json`)).body) as Image[];
    return listed.find((image) => image.Id === Id);
  }

  /** Returns when the host has ended its try: only `find` tells whether it succeeded. */
  async pull(name: string, platform: string): Promise<void> {
    const [repository, digest] = name.split('@');
    const tagged = /^(.*?)(?::([^:/]+))?$/.exec(String(repository));
    const query = new URLSearchParams({
      fromImage: String(tagged?.[1]).replace(/^docker\.io\/(library\/)?/, ''),
      tag: digest ?? tagged?.[2] ?? 'latest',
      ...(platform && { platform }),
    });
    await this.#ask('POST', `${this.#version}/images/create?${query}`);
  }

  async remove(name: string, force: boolean): Promise<void> {
    await this.#ask('DELETE', `${this.#version}/images/${name}${force ? '?force=1' : ''}`);
  }

  async #ask(method: string, path: string, accepted: number[] = []): Promise<Answer> {
    const ssh = this.#dial();
    let said = '';
    ssh.stderr?.on('data', (text: Buffer) => {
      said += text;
    });
    try {
      const answer = await exchange(ssh, method, path);
      if (answer.status >= 300 && !accepted.includes(answer.status)) {
        const { message } = JSON.parse(answer.body || '{}') as { message?: string };
        throw new Error(`Error response from daemon: ${message ?? `status ${answer.status}`}`);
      }
      return answer;
    } catch (error) {
      throw said ? new Error(`${(error as Error).message}: ${said.trim()}`) : error;
    } finally {
      ssh.kill();
    }
  }

  #dial(): ChildProcess {
    const { protocol, hostname, port, username } = new URL(this.#host);
    if (protocol !== 'ssh:') throw new Error(`the stand-in reaches ssh:// hosts only, not ${this.#host}`);
    return spawn('ssh', [
      ...(username ? ['-l', username] : []),
      ...(port ? ['-p', port] : []),
      ...[
        '-o',
        'ConnectTimeout=30',
        '-T',
        ...this.#sshOptions,
        '--',
        hostname,
        'docker',
        'system',
        'dial-stdio',
      ],
    ]);
  }
}

function exchange(ssh: ChildProcess, method: string, path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    ssh.on('error', reject);
    const connection = Duplex.from({ readable: ssh.stdout, writable: ssh.stdin } as never);
    const request = http.request({
      method,
      path,
      headers: { Host: 'docker.example.com', Connection: 'close' },
      // Anything that is read and written will do, whatever the declared type says.
      createConnection: () => connection as never,
    });
    request.on('error', reject);
    request.on('response', (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('error', reject);
      response.on('data', (text: string) => {
        body += text;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
    });
    request.end();
  });
}
