import http from 'node:http';
import https from 'node:https';
import type { Values } from '../provider.ts';

export interface RegistryAuth {
  address: string;
  authDisabled?: boolean;
}

const manifestTypes = [
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
];

/** Asks the registry for the digest of an image. Plain http only where a `registryAuth` of the provider says so. */
export async function registryImage(inputs: Values, auths: RegistryAuth[]): Promise<Values> {
  const { name, insecureSkipVerify = false } = inputs as { name: string; insecureSkipVerify?: boolean };
  const { registry, repository, tag } = partsOf(name);
  const auth = auths.find(({ address }) => address.replace(/^https?:\/\//, '') === registry);
  const server = auth?.address.startsWith('http://') ? auth.address : `https://${registry}`;
  try {
    const digest = await digestAt(`${server}/v2/${repository}/manifests/${tag}`, insecureSkipVerify);
    return { name, insecureSkipVerify, id: digest, sha256Digest: digest };
  } catch (error) {
    throw new Error(
      `Got error when attempting to fetch image version ${repository}:${tag} from registry: ${(error as Error).message}`,
    );
  }
}

/** Cuts at the first colon, as the official plugin does: `repo@sha256:…` without a tag comes out broken there, too. */
function partsOf(name: string): { registry: string; repository: string; tag: string } {
  const [first = '', ...rest] = name.split('/');
  const named = rest.length > 1 || (rest.length === 1 && (/[.:]/.test(first) || first === 'localhost'));
  const registry = named ? first : '';
  const [repository = '', ...tags] = name.slice(registry.length).replace(/^\//, '').split(':');
  const tag = tags.join(':');
  return {
    registry: registry || 'registry-1.docker.io',
    repository: registry || repository.includes('/') ? repository : `library/${repository}`,
    tag: tag.slice(tag.indexOf('@') + 1) || 'latest',
  };
}

function digestAt(address: string, insecureSkipVerify: boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { method: 'HEAD', headers: { Accept: manifestTypes } };
    const request = address.startsWith('https:')
      ? https.request(address, { ...options, rejectUnauthorized: !insecureSkipVerify })
      : http.request(address, options);
    request.on('error', (error) => reject(new Error(`Error during registry request: ${error.message}`)));
    request.on('response', (response) => {
      response.resume();
      const digest = response.headers['docker-content-digest'];
      if (response.statusCode === 200 && typeof digest === 'string') resolve(digest);
      else
        reject(new Error(`got bad response from registry: ${response.statusCode} ${response.statusMessage}`));
    });
    request.end();
  });
}
