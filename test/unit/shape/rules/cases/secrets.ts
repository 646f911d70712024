import { createPatch } from 'diff';
import { planned, type RuleCase, type RuleCases, r9vWith, withUnit } from '../rule-cases.ts';

const glm = planned('glm-w4a16');
const variables = (environment: object) => planned('glm-w4a16', { shape: { environment } });
const extra = (...extraArguments: string[]) =>
  planned('glm-w4a16', { shape: { engine: { extraArguments } } });
const speculative = (keys: object) =>
  planned('glm-w4a16', { shape: { engine: { speculative: { method: 'ngram', ...keys } } } });

const target = '/usr/lib/python3/dist-packages/vllm/a.py';
const patched = (added: string) => {
  const diff = [
    `Target: ${target}`,
    `Base-SHA256: ${'1'.repeat(64)}`,
    `Patched-SHA256: ${'2'.repeat(64)}`,
    createPatch(target.slice(1), 'old\n', `${added}\n`),
  ];
  return planned('glm-w4a16', { shape: { patches: ['a.patch'] }, patches: { 'a.patch': diff.join('\n') } });
};

const token = `hf_${'aB3'.repeat(10)}`;
const long = 'aB3dE6'.repeat(8);

/** A variable whose name says nothing. */
const said = (what: string, value: string, found?: string): RuleCase => ({
  what,
  release: variables({ NOTE: value }),
  ...(found === undefined ? {} : { found }),
});
const named = (name: string, value: string): RuleCase => ({
  what: `${name}=${value}`,
  release: variables({ [name]: value }),
});

const shapes: readonly RuleCase[] = [
  said('a token of Hugging Face', `x ${token}`, 'NOTE holds a Hugging Face token'),
  said('a key of OpenAI', `sk-${'a1'.repeat(12)}`),
  said('a key of Stripe', `rk_${'live'}_${'a1'.repeat(12)}`),
  said('a key of NVIDIA', `nvapi-${long}`),
  said('a key of Google', `AIza${'a1B-'.repeat(9)}`),
  said('a token of GitHub', `ghp_${long}`),
  said('a fine-grained token of GitHub', `github_pat_${long}`),
  said('a token of GitLab', `glpat-${long}`),
  said('a token of npm', `npm_${long}`),
  said('a token of Grafana', `glsa_${long}`),
  said('a key of AWS', `AKIA${'Z9'.repeat(8)}`, 'a key of AWS'),
  said('a passing key of AWS', `ASIA${'Z9'.repeat(8)}`),
  said('a token of Slack', `xoxb-${'1234567890'}`, 'a Slack token'),
  said('a signed token', `eyJ${long}.eyJ${long}.x`),
  said('a private key', '-----BEGIN OPENSSH PRIVATE KEY-----'),
  said('a bearer', `Bearer ${long}`),
  said('a bearer in a URL’s spelling', `authorization=Bearer%20${long}`),
  said('a login', 'Authorization: Basic dXNlcjpwdw=='),
  said('a URL with a password', 'http://user:pw@proxy:3128'),
  said('a password with a /', 'http://user:p/w@proxy:3128'),
  said('a password without a name', 'redis://:pw@host/0'),
  ...['api_key', 'apikey', 'token', 'access_token', 'sig', 'key', 'X-Amz-Signature', 'auth'].map((key) =>
    said(`a URL with ${key}`, `https://host/path?a=1&${key}=abcd`),
  ),
];

const plainUrls: readonly RuleCase[] = [
  said('a URL without a login', 'http://u%40h:3128'),
  said('a port and an @', 'http://host:8080/@scope/name'),
  said('a list of hosts', 'http://a:1,http://b:2'),
  said('a query without a key', 'https://host/?tokens=100&monkey=abcdef'),
];

export const cases: RuleCases = {
  'no-secret-in-unit': {
    fires: [
      ...shapes,
      { what: 'one in an argument', release: extra('--note', token), found: 'argument' },
      { what: 'one in the keys of speculative decoding', release: speculative({ revision: token }) },
      {
        what: 'one in the unit alone',
        release: withUnit(glm, '--http-proxy=false', `--env=A=${token}`),
        found: 'the unit holds',
      },
      { what: 'one in a patch', release: patched(`x = "${token}"`), found: 'a.patch' },
    ],
    silent: [
      { what: 'the shape as it is', release: glm },
      {
        what: 'a secret by name',
        release: planned('glm-w4a16', { shape: { secrets: { HF_TOKEN: { version: '1' } } } }),
      },
      ...plainUrls,
      { what: 'a name alone, which can be excepted', release: variables({ SORT_KEY: 'first' }) },
      { what: 'a patch', release: patched('x = 1') },
      {
        what: 'a patch that reads a header',
        release: patched('authorization = request.headers["Authorization"]'),
      },
    ],
  },
  'no-secret-by-name': {
    fires: [
      {
        what: 'a variable',
        release: variables({ HF_TOKEN: 'abcdef' }),
        found: 'HF_TOKEN holds a value in plain text',
      },
      named('PGPASSWORD', 'hunter2'),
      named('openai_api_key', 'x-y'),
      named('OPENAI_API_KEY_2', 'x-y'),
      named('OPENAI_API_KEY2', 'x-y'),
      named('SMTP_PWD', 'x-y'),
      named('REGISTRY_AUTH', 'x-y'),
      named('VLLM_AUTH_VALUE', 'x-y'),
      named('SESSION_COOKIE', 'x-y'),
      named('CLIENT_SECRET_ID', 'x-y'),
      named('DB_PASS', 'x-y'),
      named('GITHUB_PAT', 'x-y'),
      named('OTEL_EXPORTER_OTLP_HEADERS', 'x-team=abcdef'),
      named('OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'api-key=abcdef'),
      named('HF_TOKEN', '/aB3+dE6='),
      named('HF_TOKEN', '/aB3dE6'),
      named('AWS_SECRET_ACCESS_KEY', '/aB3dE6/gH9'),
      named('HF_TOKEN', '12345678'),
      named('OPTIONS', 'a=b,token=abcdef'),
      named('OPTIONS', 'password: abcdef'),
      named('ENDPOINT', 'https://abcdef123456@sentry.example/1'),
      { what: 'JSON in a variable', release: variables({ CONFIG: '{"s3":[{"token":"abc"}]}' }) },
      { what: 'an argument', release: extra('--api-key', 'letmein'), found: '--api-key holds a value' },
      { what: 'an argument in one word', release: extra('--hf-token=abc') },
      { what: 'an argument that is the word', release: extra('--token', 'abc') },
      ...[
        '{"s3":{"secret_key":"abc"}}',
        '{"s3":{"secret_access_key":"abc"}}',
        '{"s3":{"secretAccessKey":"abc"}}',
        '{"list":[{"api_key":"abc"}]}',
        '{"list":[["x",{"password":"abc"}]]}',
        '{"api_key":["abc"]}',
        '{"token":"abc"}',
        '{"accessToken":"abc"}',
        '[{"client_secret":"abc"}]',
      ].map((json) => ({ what: json, release: extra('--model-loader-extra-config', json) })),
      {
        what: 'the second of several JSON values',
        release: extra('--lora-modules', '{"a":1}', '{"token":"abc"}'),
      },
      { what: 'a key behind a dot', release: extra('--model-loader-extra-config.api_key', 'abc') },
      {
        what: 'a key of speculative decoding',
        release: speculative({ draft_load_config: { token: 'abc' } }),
      },
      {
        what: 'an argument of another engine',
        release: r9vWith('--api-key', 'abc'),
      },
    ],
    silent: [
      { what: 'the shape as it is', release: glm },
      {
        what: 'a secret by name',
        release: planned('glm-w4a16', { shape: { secrets: { HF_TOKEN: { version: '1' } } } }),
      },
      named('SSL_KEY', '/run/key.pem'),
      named('HF_TOKEN_PATH', '/run/t'),
      named('SSL_KEY', '/model/key.pem'),
      named('HF_HUB_DISABLE_IMPLICIT_TOKEN', '1'),
      named('MAX_TOKEN', '4096'),
      named('EOS_TOKEN', '<|im_end|>'),
      named('STOP_TOKEN', 'END'),
      named('CACHE_KEY', 'model-v1'),
      named('SORT_KEY', 'first'),
      named('TOKENIZER_KEY', 'a'),
      named('FUSION_PASS', 'norm'),
      named('REGEX_PAT', 'x+'),
      named('MODEL_AUTHOR', 'zai'),
      named('MONKEY', 'abc'),
      named('HF_TOKEN', ''),
      {
        what: 'tokens of a model',
        release: extra('--override-config', '{"pad_token":"<pad>","eos_token":"END","eos_token_id":2}'),
      },
      { what: 'a file of a key', release: extra('--ssl-keyfile', '/run/key.pem') },
      ...plainUrls,
    ],
  },
};
