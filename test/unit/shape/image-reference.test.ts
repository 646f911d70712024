import { describe, expect, it } from 'vitest';
import { imageReference, imageSchema } from '../../../shape/engines/image.ts';

const hex = 'da4029666'.padEnd(64, '0');
const digest = `sha256:${hex}`;

/** What is said of an image, empty when it is taken. */
function complaints(image: object): readonly string[] {
  const { error } = imageSchema.safeParse({ repository: 'docker.io/tcclaviger/vllm', digest, ...image });
  return error?.issues.map(({ path, message }) => `${path.join('.')} ${message}`) ?? [];
}

describe('the repository of an image', () => {
  it.each([
    'docker.io/tcclaviger/vllm',
    'docker.io/library/vllm',
    'localhost/x',
    'localhost:5000/x',
    'host:5000/x',
    'host.example:5000/a/b/c',
    '192.0.2.7:5000/x',
    'quay.io/a_b/c__d/e-f.g',
    'host:65535/x',
    `docker.io/${'x'.repeat(245)}`,
    `docker.io/x/${hex.slice(1)}`,
  ])('may be %s', (repository) => {
    expect(complaints({ repository })).toEqual([]);
    expect(imageReference({ repository, digest })).toBe(`${repository}@${digest}`);
  });

  it.each([
    ['a short name', 'vllm/vllm-openai', 'begin with the registry'],
    ['a name alone', 'vllm', 'begin with the registry'],
    ['nothing', '', 'begin with the registry'],
    ['a slash first', '/vllm/vllm-openai', 'begin with the registry'],
    ['a tag', 'docker.io/vllm/vllm-openai:v0.27', 'must not hold a tag'],
    ['a tag of a short name', 'vllm:v0.27', 'must not hold a tag'],
    ['a tag behind a registry with a port', 'host:5000/x:latest', 'must not hold a tag'],
    ['tag and digest', `docker.io/vllm/vllm:v0.27@${digest}`, 'must not hold a digest'],
    ['a digest', `docker.io/vllm/vllm@${digest}`, 'must not hold a digest'],
    ['an upper-case name', 'docker.io/vLLM/vllm', 'lower case'],
    ['an upper-case registry', 'Docker.io/vllm/vllm', 'lower case'],
    ['a registry alone', 'docker.io', 'lower case'],
    ['a registry and a slash', 'docker.io/', 'lower case'],
    ['an empty part', 'docker.io//vllm', 'lower case'],
    ['a slash at its end', 'docker.io/vllm/', 'lower case'],
    ['a scheme', 'https://docker.io/vllm/vllm', 'lower case'],
    ['a transport', 'docker://docker.io/vllm/vllm', 'lower case'],
    ['a port that is none', 'host:port/x', 'lower case'],
    ['port 0', 'host:0/x', 'lower case'],
    ['a port above 65535', 'host:65536/x', 'port from 1 to 65535'],
    ['a port of five nines', 'docker.io:99999/x', 'port from 1 to 65535'],
    ['a port with a leading zero', 'host:0443/x', 'lower case'],
    ['a registry with two dots', 'a..b/x', 'lower case'],
    ['a registry whose part begins with a dash', 'a.-b/x', 'lower case'],
    ['a registry whose part ends with a dash', 'a-.b/x', 'lower case'],
    ['a registry that ends with a dot', 'docker.io./x', 'lower case'],
    ['a name of 64 hexadecimal digits', `docker.io/${hex}`, 'id of an image'],
    ['such a name below another', `docker.io/x/${hex}`, 'id of an image'],
    ['256 characters', `docker.io/${'x'.repeat(246)}`, 'at most 255'],
    ['dots alone for a registry', '../x', 'lower case'],
    ['an option', '-v.x/y', 'lower case'],
    ['a trailing blank', 'docker.io/vllm/vllm ', 'ASCII'],
    ['a blank in front', ' docker.io/vllm/vllm', 'ASCII'],
    ['a line break', 'docker.io\n/vllm/vllm', 'ASCII'],
    ['a line break at its end', 'docker.io/vllm/vllm\n', 'ASCII'],
    ['a tab', 'docker.io/vllm\t/vllm', 'ASCII'],
    ['NUL', 'docker.io/vllm\0', 'ASCII'],
    ['a letter that looks like another', 'docker.io/vllм/vllm', 'ASCII'],
    ['a dash that looks like another', 'docker.io/vllm‑openai/x', 'ASCII'],
    ['a blank that does not look like one', 'docker.io/vllm\u200b/x', 'ASCII'],
    ['a full-width slash', 'docker.io／vllm', 'ASCII'],
  ])('must not be %s', (_what, repository, said) => {
    expect(complaints({ repository })).toEqual([expect.stringContaining(said)]);
  });
});

describe('the digest of an image', () => {
  it.each([
    ['63 digits', `sha256:${hex.slice(1)}`],
    ['65 digits', `${digest}0`],
    ['upper-case digits', `sha256:${hex.toUpperCase()}`],
    ['an upper-case algorithm', `SHA256:${hex}`],
    ['no algorithm', hex],
    ['no algorithm behind @', `@${hex}`],
    ['an @ in front', `@${digest}`],
    ['another algorithm', `sha512:${hex}${hex}`],
    ['a hyphen for the colon', `sha256-${hex}`],
    ['a trailing blank', `${digest} `],
    ['a blank in front', ` ${digest}`],
    ['a line break at its end', `${digest}\n`],
    ['a line break within', `sha256:\n${hex}`],
    ['a letter that is no digit', `sha256:${hex.slice(1)}g`],
    ['a letter that looks like one', `sha256:${hex.slice(1)}а`],
    ['full-width digits', `sha256:${hex.slice(1)}０`],
    ['a tag', 'latest'],
    ['nothing', ''],
    ['a name in front', `docker.io/x@${digest}`],
    ['an ellipsis', 'sha256:da4029666…'],
  ])('must not be %s', (_what, wrong) => {
    expect(complaints({ digest: wrong })).toEqual([
      'digest must be sha256: and 64 lower-case hexadecimal digits',
    ]);
  });

  it('begins as the one on record', () => {
    expect(complaints({ recordedPrefix: 'da4029666' })).toEqual([]);
    expect(complaints({ recordedPrefix: 'da4029667' })).toEqual([
      'digest must begin with sha256:da4029667, the digest on record',
    ]);
  });

  it.each(['da4', 'DA4029666', 'sha256:da4029666', '', 'da40 29666'])(
    'is not held to %j',
    (recordedPrefix) => {
      expect(complaints({ recordedPrefix })).toEqual([expect.stringContaining('recordedPrefix')]);
    },
  );
});

it('a tag has no key', () => {
  expect(complaints({ tag: 'v0.27' })).toEqual([expect.stringContaining('tag')]);
});
