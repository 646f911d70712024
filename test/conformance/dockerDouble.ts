/** Test double of a docker host behind `docker system dial-stdio`: the little of its interface that pulls images. */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { Duplex } from 'node:stream';

/** What the double knows, in a JSON file that the tests read and write. */
export interface DockerDouble {
  images: { Id: string; RepoDigests: string[] }[];
  /** What a pull brings. */
  registry: { Id: string; RepoDigests: string[] }[];
}

const [file = '', ...words] = process.argv.slice(2);
if (words.join(' ') !== 'system dial-stdio') throw new Error(`unexpected: docker ${words.join(' ')}`);

const server = http.createServer((request, response) => {
  const { images, registry } = JSON.parse(readFileSync(file, 'utf8')) as DockerDouble;
  const keep = (kept: DockerDouble['images']) =>
    writeFileSync(file, JSON.stringify({ images: kept, registry }));
  const answer = (status: number, body: object | string) => {
    response.writeHead(status, { 'Content-Type': 'application/json', 'Api-Version': '1.41' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://double');
  const path = decodeURIComponent(pathname.replace(/^\/v[\d.]+/, ''));
  appendFileSync(
    `${file}.log`,
    `${request.method} ${path}${searchParams.size > 0 ? `?${searchParams}` : ''}\n`,
  );
  const named = (name: string) => (image: { RepoDigests: string[] }) => image.RepoDigests.includes(name);

  if (path === '/_ping') return answer(existsSync(`${file}.down`) ? 500 : 200, 'OK');
  if (path === '/version') return answer(200, { ApiVersion: '1.41' });
  if (path === '/images/json') return answer(200, images);
  if (path === '/images/create') {
    const name = `${searchParams.get('fromImage')}@${searchParams.get('tag')}`;
    const found = registry.find(named(name));
    if (!found) return answer(404, { message: `manifest for ${name} not found` });
    keep([...images, found]);
    return answer(200, `${JSON.stringify({ status: `Digest: ${name}` })}\n`);
  }
  const name = path.replace(/^\/images\//, '').replace(/\/json$/, '');
  const image = images.find(named(name));
  if (!image) return answer(404, { message: `No such image: ${name}` });
  if (request.method === 'DELETE') {
    keep(images.filter((other) => other !== image));
    return answer(200, [{ Deleted: image.Id }]);
  }
  answer(200, image);
});
const connection = Duplex.from({ readable: process.stdin, writable: process.stdout } as never);
connection.on('close', () => process.exit());
server.emit('connection', connection);
