import { describe, expect, it } from 'vitest';
import { parseDocument } from 'yaml';
import { load, loadStackFile, openValues, type Problem } from '../../../shape/configuration.ts';
import {
  hostKey,
  operatorFile,
  shapeStacks,
  suppliedHost,
  suppliedShape,
} from '../../fixtures/operator-files.ts';
import { problemsOf } from '../../fixtures/problems.ts';

const digest = `sha256:${'0'.repeat(64)}`;

const host = `config:
  slot:host:
    name: dankserver
    address: 192.0.2.7
    hostKey: ${hostKey}
    service: frank-archon
    gpus: []
`;

const shape = `config:
  slot:shape:
    host: dankserver
    engine:
      kind: vllm
      image:
        repository: docker.io/tcclaviger/vllm
        digest: ${digest}
      servedName: glm
      maxModelLength: 4096
      gpuMemoryUtilization: 0.98
      prefixCaching: true
    payload:
      folder: glm
`;

/** The problems of a stack file in which the value at one place is another text of YAML. */
function problemsWith(file: string, path: string, value: string): readonly Problem[] {
  const document = parseDocument(file);
  document.setIn(['config', ...path.split('.')], 'PLACE');
  return problemsOf(() =>
    loadStackFile(
      file === host ? 'Pulumi.dankserver.yaml' : 'Pulumi.glm-w4a16.yaml',
      String(document).replace('PLACE', () => value),
    ),
  );
}

describe('a stack file', () => {
  it('gives a host with its defaults', () => {
    expect(loadStackFile('Pulumi.dankserver.yaml', host)).toMatchObject({
      kind: 'host',
      host: { sshPort: 22, user: 'dank', port: 7770, modelsRoot: '/home/dank/models', securityOptions: [] },
    });
  });

  it('gives a shape and the folder of the host files', () => {
    const file = loadStackFile('Pulumi.glm-w4a16.yaml', `${shape}  slot:hostsFolder: ../hosts\n`);
    expect(file).toMatchObject({ kind: 'shape', hostsFolder: '../hosts', shape: { host: 'dankserver' } });
  });

  it('leaves what belongs to Pulumi and to other packages alone', () => {
    const text = `encryptionsalt: v1:x\n${shape}  docker:host: ssh://x\n  command:x: no\n  aws:profile: 0600\n`;
    expect(problemsOf(() => loadStackFile('Pulumi.glm-w4a16.yaml', text))).toEqual([]);
  });

  it.each([
    ['what is no YAML', 'config: {a', 'must be YAML'],
    ['a key twice', `${shape}    host: other\n`, 'twice'],
    ['a key of another package twice', `${shape}  other:a: 1\n  other:a: 2\n`, 'twice'],
    ['nothing to describe', 'config: {}\n', 'either slot:host or slot:shape'],
    ['no configuration', 'encryptionsalt: v1:x\n', 'either slot:host or slot:shape'],
    ['an empty text', '', 'either slot:host or slot:shape'],
    ['a host and a shape at once', host + shape.replace('config:\n', ''), 'either slot:host or slot:shape'],
    ['a misspelt section', `${shape}confg: {}\n`, 'not a known key'],
    ['a folder of hosts in the file of a host', `${host}  slot:hostsFolder: x\n`, 'file of a host'],
    ['a version of YAML', `%YAML 1.1\n---\n${shape}`, 'version of YAML'],
    ['a second document', `${shape}---\na: b\n`, 'must be YAML'],
    ['a list of keys', 'config: [x]\n', 'either slot:host or slot:shape'],
    ['a line end of another kind', shape.replace('glm\n', 'glm\u2028\n'), 'line ends of another kind'],
    ['a folder of hosts that is no text', `${shape}  slot:hostsFolder: 3\n`, 'must be text'],
  ])('is refused with %s', (_what, text, limit) => {
    const limits = problemsOf(() => loadStackFile('Pulumi.x.yaml', text)).map((problem) => problem.limit);
    expect(limits).toContainEqual(expect.stringContaining(limit));
  });

  it.each([
    ['slot:shap: {}', 'slot:shap', 'did you mean slot:shape?'],
    ['slot:hostFolder: x', 'slot:hostFolder', 'did you mean slot:hostsFolder?'],
    ['oldname:shape: {host: x}', 'oldname:shape', 'did you mean slot:shape?'],
    ['shape: {host: x}', 'shape', 'did you mean slot:shape?'],
    ['a:b:c: 1', 'a:b:c', 'known here'],
    ["'': 1", '[""]', 'known here'],
    ['slot: 1', 'slot', 'did you mean slot:host?'],
    ['engine:maxModeLen: 1', 'engine:maxModeLen', 'did you mean slot:shape.engine.maxModelLength?'],
    ['oldproject:image: x', 'oldproject:image', 'did you mean slot:shape.engine.image?'],
    ['oldproject:hostsFolder: x', 'oldproject:hostsFolder', 'did you mean slot:hostsFolder?'],
    ['other:port: 7770', 'other:port', 'did you mean slot:host.port?'],
    ['host:adress: x', 'host:adress', 'did you mean slot:host.address?'],
  ])('is refused with the key %s', (line, key, remedy) => {
    const problems = problemsOf(() => loadStackFile('Pulumi.x.yaml', `${shape}  ${line}\n`));
    expect(problems).toEqual([expect.objectContaining({ key, remedy: expect.stringContaining(remedy) })]);
  });

  it('names everything that is wrong at once, each with file, key, value, limit and remedy', () => {
    const problems = problemsWith(
      shape,
      'slot:shape.engine',
      '{kind: vllm, servedName: 3, maxModelLength: 1.5, gpuMemoryUtilization: 2, prefixCaching: no, toolparser: x}',
    );
    expect(problems.map(({ key }) => key).sort()).toEqual([
      'slot:shape.engine.gpuMemoryUtilization',
      'slot:shape.engine.image.digest',
      'slot:shape.engine.image.repository',
      'slot:shape.engine.maxModelLength',
      'slot:shape.engine.prefixCaching',
      'slot:shape.engine.servedName',
      'slot:shape.engine.toolparser',
    ]);
    for (const problem of problems) {
      expect(problem).toMatchObject({ file: 'Pulumi.glm-w4a16.yaml', limit: /./, remedy: /./ });
    }
  });

  it('is complained about in words that a person can act on', () => {
    const document = shape.replace('maxModelLength: 4096', 'maxModelLen: 4096');
    expect(() => loadStackFile('Pulumi.glm-w4a16.yaml', document)).toThrow(
      [
        'Pulumi.glm-w4a16.yaml: slot:shape.engine.maxModelLength: is required',
        "    set it: pulumi config set --path 'slot:shape.engine.maxModelLength' <value> -s glm-w4a16",
        'Pulumi.glm-w4a16.yaml: slot:shape.engine.maxModelLen: is not a known key',
        '    did you mean maxModelLength?',
      ].join('\n'),
    );
  });
});

describe('a value', () => {
  it.each([
    ['an octal number', 'engine.image.recordedPrefix', '0600', "quote it: '0600'"],
    ['a number with an exponent', 'engine.image.recordedPrefix', '12345e6', "quote it: '12345e6'"],
    ['a date', 'environment', '{SINCE: 2026-01-01}', "quote it: '2026-01-01'"],
    ['a number where text is wanted', 'environment', '{VERSION: 1.20}', "quote it: '1.20'"],
    ['a truth where text is wanted', 'environment', '{FLAG: true}', "quote it: 'true'"],
    ['a word for a truth', 'engine.prefixCaching', 'yes', 'write true or false'],
    ['a word for a truth as a key', 'environment', '{ON: x}', "quote it: 'ON'"],
    ['a big number', 'engine.maxModelLength', '9007199254740993', 'plain decimal number'],
    ['underscores', 'engine.maxModelLength', '131_072', 'write 131072'],
    ['an alias', 'environment', '{A: &a x, B: *a}', 'write the value out'],
    ['a secret', 'environment', '{TOKEN: {secure: v1:x}}', 'leave it out'],
    ['a limit in pages, bytes or KiB', 'limits', '{memlock: 8192}', 'limits.memlock write infinity'],
    ['a limit of -1', 'limits', '{memlock: -1}', 'limits.memlock write infinity'],
    ['a limit of -1 in quotes', 'limits', "{memlock: '-1'}", "a size with its unit, e.g. '64 MiB'"],
    [
      'a limit by the word of another program',
      'limits',
      '{memlock: unlimited}',
      'limits.memlock write infinity',
    ],
    ['a limit in a unit of its own', 'limits', '{memlock: 64 MB}', "a size with its unit, e.g. '64 MiB'"],
    ['no limit of processes by -1', 'limits', '{pids: -1}', 'limits.pids write infinity'],
    ['fewer processes than an engine has', 'limits', '{pids: 255}', 'limits.pids write infinity'],
    ['more processes than Linux counts', 'limits', '{pids: 4194305}', 'limits.pids write infinity'],
    ['no limit of processes by 0', 'limits', '{pids: 0}', 'limits.pids write infinity'],
    ['no limit of processes by another word', 'limits', '{pids: unlimited}', 'limits.pids write infinity'],
    [
      'a limit of processes in quotes',
      'limits',
      "{pids: '4096'}",
      'a plain number without quotes, e.g. 4096',
    ],
    ['a number in quotes', 'engine.maxModelLength', "'4096'", 'take the quotes away: 4096'],
    ['a truth in quotes', 'engine.prefixCaching', "'true'", 'take the quotes away: true'],
    ['a number with a letter', 'engine.maxModelLength', '8000O', 'slot:shape.engine.maxModelLength'],
    ['a hexadecimal number', 'engine.maxModelLength', '0x1F40', 'write 8000'],
    [
      'a number that is written with an exponent',
      'engine.gpuMemoryUtilization',
      '0.0000001',
      '6 of them behind the point',
    ],
    ['nothing where a value is optional', 'shortName', '~', 'write a value, or take it out'],
    ['nothing where a value is required', 'engine.servedName', '~', 'pulumi config set'],
    ['no time to stop', 'deadlines', '{stop: 0 s}', 'give it time'],
    ['no time to boot', 'deadlines', '{boot: 0 min}', 'give it time'],
    ['a deadline beyond a timer', 'deadlines', '{boot: 1000 h}', "e.g. '20 min'"],
    ['a rule that there is not', 'exceptions', '{nccl-protocl: x}', 'did you mean nccl-protocol?'],
    ['a number as a key', 'state', '{1: x}', "quote it: '1'"],
    ['nothing as a key', 'state', '{~: x}', "quote it: '~'"],
    ['a list as a key', 'state', '{[a]: x}', 'write the key as text'],
    ['a merge', 'state', '{<<: {a: b}}', "quote it: '<<'"],
    ['a tag', 'environment', '{A: !!str 5}', 'remove the tag'],
    ['a key twice', 'environment', '{A: x, A: x}', 'keep one of them'],
    ['nested without end', 'engine.speculative', `{a: ${'['.repeat(40)}${']'.repeat(40)}}`, 'flatten it'],
    ['a deadline without unit', 'deadlines', '{boot: 20}', "e.g. '20 min'"],
    ['a deadline in a unit of its own', 'deadlines', '{boot: 20 minutes}', "e.g. '20 min'"],
    ['a memory size without unit', 'engine.kvCacheMemory', '1024', "e.g. '64 MiB'"],
    ['an engine that does not exist', 'engine', '{kind: sglang}', 'slot:shape.engine.kind'],
    ['a key that another kind of engine has', 'engine.healthPath', '/health', 'known here: kind, image'],
    ['a variable that is no name', 'environment', '{a-b: x}', 'slot:shape.environment.a-b write another key'],
    ['a value of two lines', 'environment', '{BANNER: "a\\nExecStartPre=/usr/bin/touch /x"}', 'BANNER'],
    ['NUL in a value', 'environment', '{A: "a\\0"}', 'slot:shape.environment.A'],
    ['a path that podman would split', 'payload.folder', 'a:rw', 'slot:shape.payload.folder'],
    ['a path that leaves its root', 'payload.folder', '../x', 'pulumi config set'],
    ['a mount at no place', 'mounts', '[{source: a, target: draft}]', 'slot:shape.mounts[0].target'],
    ['a flag and its value in one element', 'engine.extraArguments', '[--dtype auto]', '--flag=value'],
    ['the entrypoint again', 'engine.extraArguments', '[vllm, serve, /m]', 'remove it'],
    ['a flag of a field', 'engine.extraArguments', "[--port, '7771']", 'use that field'],
    [
      'a flag of a field, turned off',
      'engine.extraArguments',
      '[--no-enable-prefix-caching]',
      'use that field',
    ],
    ['a flag of a field, abbreviated', 'engine.extraArguments', '[--gpu-memory-util=0.9]', 'use that field'],
    ['a flag twice', 'engine.extraArguments', "[--seed=1, --seed, '2']", 'keep one'],
    ['quotes that no shell removes', 'engine.extraArguments', `["--x='{}'"]`, 'remove the quotes'],
  ])('is refused when it is %s', (_what, path, value, told) => {
    const problems = problemsWith(shape, `slot:shape.${path}`, value);
    expect(problems.map(({ key, remedy }) => `${key} ${remedy}`)).toContainEqual(
      expect.stringContaining(told),
    );
    expect(problems.every(({ key }) => key.startsWith('slot:shape'))).toBe(true);
  });

  it.each([
    ['engine.extraArguments', '[--override-generation-config, \'{"temperature": 0}\', --seed=1]'],
    ['environment', '{A: "", B: "$HOME 100% \\"x\\"", VLLM_COMPILE_FULLGRAPH: \'0\'}'],
    ['limits', '{memlock: infinity, pids: 4096}'],
    ['limits', '{memlock: 64 MiB}'],
    ['deadlines', '{drain: 0 s, settle: 0 s, boot: 168 h}'],
    ['mounts', '[{source: GLM-5.3-Flash-DFlash2, target: /draft}]'],
    ['engine.speculative', '{method: dflash, model: /draft, num_speculative_tokens: 8}'],
  ])('is accepted: %s as %s', (path, value) => {
    expect(problemsWith(shape, `slot:shape.${path}`, value)).toEqual([]);
  });
});

describe('an image', () => {
  it.each([
    ['63 digits', 'digest', `sha256:${'0'.repeat(63)}`],
    ['upper case', 'digest', `sha256:${'A'.repeat(64)}`],
    ['a trailing space', 'digest', `'${digest} '`],
    ['no algorithm', 'digest', `'${'0'.repeat(64)}'`],
    ['a tag instead', 'digest', 'latest'],
  ])('is refused with a digest of %s, and the commands that find it are told', (_what, key, value) => {
    const [problem] = problemsWith(shape, `slot:shape.engine.image.${key}`, value);
    expect(problem?.remedy).toContain("'sudo podman image ls --digests docker.io/tcclaviger/vllm'");
    expect(problem?.remedy).toContain("'podman image ls --digests docker.io/tcclaviger/vllm'");
    expect(problem?.remedy).toContain("--path 'slot:shape.engine.image.digest' sha256:… -s glm-w4a16");
  });

  it.each([
    ['no registry', 'vllm/vllm-openai', 'docker.io/vllm/vllm-openai'],
    ['a tag', 'docker.io/vllm/vllm-openai:v0.27', 'remove the tag'],
    ['a digest', `docker.io/vllm/vllm@${digest}`, 'key digest'],
    ['upper case', 'docker.io/vLLM/vllm', 'podman image ls'],
    ['a registry alone', 'localhost', 'podman image ls'],
  ])('is refused when its repository has %s', (_what, repository, remedy) => {
    const [problem] = problemsWith(shape, 'slot:shape.engine.image.repository', repository);
    expect(problem?.remedy).toContain(remedy);
  });

  it.each(['localhost/x', 'registry:5000/x', 'host.example/a/b-c/d__e'])(
    'is accepted from %s',
    (repository) => {
      expect(problemsWith(shape, 'slot:shape.engine.image.repository', repository)).toEqual([]);
    },
  );

  it('is refused when its digest is not the one on record, naming both', () => {
    const [problem] = problemsWith(shape, 'slot:shape.engine.image.recordedPrefix', 'da4029666');
    expect(problem).toMatchObject({
      key: 'slot:shape.engine.image.digest',
      value: digest,
      limit: expect.stringContaining('sha256:da4029666'),
    });
  });
});

describe('a host', () => {
  const ecdsa = `ecdsa-sha2-nistp256 ${Buffer.concat([
    Buffer.from([0, 0, 0, 19]),
    Buffer.from('ecdsa-sha2-nistp256'),
    Buffer.alloc(85),
  ]).toString('base64')}`;

  it.each([hostKey, `${hostKey} comment`, ecdsa])('is accepted with the key %s', (key) => {
    expect(problemsWith(host, 'slot:host.hostKey', key)).toEqual([]);
  });

  it('is refused with an RSA key, and told how to fetch and set another', () => {
    const [problem] = problemsWith(host, 'slot:host.hostKey', 'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAA');
    expect(problem?.limit).toContain('RSA');
    expect(problem?.remedy).toContain('ssh-keyscan -t ed25519 192.0.2.7\n');
    expect(problem?.remedy).toContain("pulumi config set --path 'slot:host.hostKey'");
  });

  it('is told to scan the port that sshd has', () => {
    const document = host.replace('gpus: []', 'gpus: []\n    sshPort: 2222').replace(hostKey, 'x');
    const [problem] = problemsOf(() => loadStackFile('Pulumi.dankserver.yaml', document));
    expect(problem?.remedy).toContain('ssh-keyscan -t ed25519 -p 2222 192.0.2.7');
  });

  it.each([
    ['a key cut short', 'hostKey', hostKey.slice(0, 40)],
    ['a key of another type than it says', 'hostKey', hostKey.replace('ssh-ed25519', 'ecdsa-sha2-nistp256')],
    ['a fingerprint', 'hostKey', 'SHA256:AAAA'],
    ['a port out of range', 'port', '70000'],
    ['a port with a letter', 'port', '8000O'],
    ['a hexadecimal port', 'port', '0x1F40'],
    ['an unquoted PCI address', 'gpus', '[0000:03:00.0]'],
    ['a GPU twice', 'gpus', "['0000:03:00.0', '0000:03:00.0']"],
    ['a device twice', 'deviceFiles', '[/dev/kfd, /dev/dri, /dev/kfd]'],
    ['a login that ssh takes for an option', 'user', '-oProxyCommand=x'],
    ['an address that ssh takes for an option', 'address', '-V'],
    ['an address of two words', 'address', '192.0.2.7 x'],
    ['a host key of two lines', 'hostKey', `"${hostKey} a\\nb"`],
    ['a short PCI address', 'gpus', "['03:00.0']"],
    ['a service that is no name', 'service', 'Frank Archon'],
    ['a gate without unit', 'memoryGate', '230'],
    ['a secret', 'privateKeyPath', '{secure: v1:x}'],
    ['a relative models root', 'modelsRoot', 'models'],
    ['an unknown key', 'adress', 'x'],
    ['a jump host without a key', 'jumpHost', '{address: 192.0.2.8}'],
  ])('is refused with %s', (_what, key, value) => {
    const problems = problemsWith(host, `slot:host.${key}`, value);
    expect(problems).toHaveLength(1);
    expect(problems[0]?.key).toContain(`slot:host.${key}`);
  });
});

describe("the operator's own files", () => {
  it.each([
    ['dankserver', ['address', 'hostKey', 'gpus'].map((key) => `slot:host.${key}`)],
    ['glm-w4a16', ['slot:shape.engine.image.digest']],
    ['qwen-fp8-mtp4', ['slot:shape.engine.image.digest']],
    [
      'r9v-q8_0',
      ['engine.image.repository', 'engine.image.digest', 'engine.arguments', 'payload.folder'].map(
        (key) => `slot:shape.${key}`,
      ),
    ],
  ])('%s asks for what only the operator knows and for nothing else', (stack, keys) => {
    const problems = problemsOf(() => loadStackFile(`Pulumi.${stack}.yaml`, operatorFile(stack)));
    expect(problems.map(({ key }) => key).sort()).toEqual([...keys].sort());
    for (const { remedy } of problems) expect(remedy).toMatch(/^find it: .*\nset it: /ms);
  });

  it.each(shapeStacks)('%s is whole once that is supplied', (stack) => {
    expect(suppliedShape(stack).host).toBe(suppliedHost().name);
  });
});

describe('what Pulumi hands over', () => {
  const given = (config: Record<string, unknown>, secretKeys: string[] = []) =>
    problemsOf(() => load(openValues('Pulumi.x.yaml', config, secretKeys)));

  it('is held to the same rules', () => {
    expect(given({ 'slot:shape': { host: 3 } }).map(({ key }) => key)).toContain('slot:shape.host');
    expect(given({ 'slot:host': {} }).map(({ key }) => key)).toContain('slot:host.address');
  });

  it('is refused with a misspelt key, whatever file it is of', () => {
    const config = { 'slot:shap': { host: 'x' }, 'other:region': 'x', 'slot:host': {} };
    expect(given(config)).toContainEqual(
      expect.objectContaining({ key: 'slot:shap', remedy: 'did you mean slot:shape?' }),
    );
    expect(given(config).map(({ key }) => key)).not.toContain('other:region');
  });

  it.each(['slot:host', 'slot:shape'])(
    'is refused by name where %s holds a secret, and nothing of it is said',
    (key) => {
      const problems = given({ [key]: { host: 3, address: 4, hostKey: 'canary', user: ['canary'] } }, [key]);
      expect(problems).toEqual([expect.objectContaining({ key, limit: expect.stringContaining('secret') })]);
      expect(JSON.stringify(problems)).not.toContain('canary');
    },
  );

  it('may hold decrypted secrets for the variables of the shape, and for no others', () => {
    const secrets = { HF_TOKEN: 'canary', HF_TOKN: 'canary' };
    const problems = given({ 'slot:shape': { secrets: { HF_TOKEN: {} } }, 'slot:secrets': secrets }, [
      'slot:secrets',
    ]);
    expect(problems.filter(({ key }) => key.startsWith('slot:secrets'))).toEqual([
      expect.objectContaining({ key: 'slot:secrets.HF_TOKN', remedy: 'did you mean HF_TOKEN?' }),
    ]);
    expect(JSON.stringify(problems)).not.toContain('canary');
  });
});

describe('slot:secrets', () => {
  const withSecrets = (secrets: string, values: string) =>
    problemsOf(() =>
      loadStackFile('Pulumi.glm.yaml', `${shape}    secrets: ${secrets}\n  slot:secrets: ${values}\n`),
    );

  it('is taken with each value encrypted', () => {
    expect(withSecrets("{HF_TOKEN: {version: '1'}}", '{HF_TOKEN: {secure: v1:abc:def}}')).toEqual([]);
  });

  it.each([
    ['in plain text', '{HF_TOKEN: canary}', 'slot:secrets.HF_TOKEN'],
    ['that readers type differently', '{HF_TOKEN: 0600}', 'slot:secrets.HF_TOKEN'],
    ['in another map', '{HF_TOKEN: {insecure: canary}}', 'slot:secrets.HF_TOKEN'],
    ['that is no text', '{HF_TOKEN: {secure: 12}}', 'slot:secrets.HF_TOKEN'],
    ['in a list', '[canary]', 'slot:secrets'],
    ['alone', 'canary', 'slot:secrets'],
    ['all encrypted as one', '{secure: v1:canary}', 'slot:secrets'],
    ['where a name belongs', '{HF_TOKEN canary: }', 'slot:secrets'],
    ['with a name that is a number', '{0777: canary}', 'slot:secrets'],
  ])('is refused with a value %s, without repeating it', (_what, values, key) => {
    const problems = withSecrets("{HF_TOKEN: {version: '1'}}", values);
    expect(problems.map((problem) => problem.key)).toContain(key);
    expect(JSON.stringify(problems)).not.toMatch(/canary|0600|0777/);
  });

  it('is refused with a value for a variable that the shape does not name, and told the nearest', () => {
    expect(withSecrets("{HF_TOKEN: {version: '1'}}", '{HF_TOKN: {secure: v1:x}}')).toEqual([
      expect.objectContaining({ key: 'slot:secrets.HF_TOKN', remedy: 'did you mean HF_TOKEN?' }),
    ]);
  });

  it('is refused in the file of a host', () => {
    const problems = problemsOf(() =>
      loadStackFile('Pulumi.dankserver.yaml', `${host}  slot:secrets: {A: {secure: v1:x}}\n`),
    );
    expect(problems).toEqual([expect.objectContaining({ key: 'slot:secrets' })]);
  });
});

describe('a secret', () => {
  it.each([
    ['environment', '{TOKEN: {secure: v1:canary}}', 'slot:shape.environment.TOKEN'],
    ['environment', '{secure: v1:canary}', 'slot:shape.environment'],
    ['engine.extraArguments', '[--x, {secure: v1:canary}]', 'slot:shape.engine.extraArguments[1]'],
    ['engine.image.digest', '{secure: v1:canary}', 'slot:shape.engine.image.digest'],
    [
      'engine.speculative',
      '{deep: {deeper: [{secure: v1:canary}]}}',
      'slot:shape.engine.speculative.deep.deeper[0]',
    ],
    ['limits', '{memlock: {secure: v1:canary, more: canary}}', 'slot:shape.limits.memlock'],
    ['environment', '{TOKEN: {secure: 0777}}', 'slot:shape.environment.TOKEN'],
    ['payload', '{secure: v1:canary}', 'slot:shape.payload'],
  ])('below %s as %s is refused by its key, once, and nothing of it is said', (path, value, key) => {
    const problems = problemsWith(shape, `slot:shape.${path}`, value);
    expect(
      problems.filter((problem) => problem.limit.includes('secret')).map((problem) => problem.key),
    ).toEqual([key]);
    expect(JSON.stringify(problems)).not.toMatch(/canary|0777/);
  });

  it('is not repeated where the YAML around it is broken', () => {
    for (const line of [
      'TOKEN: |canary',
      'TOKEN: "\\q canary"',
      'TOKEN: !canary x',
      'TOKEN: [canary',
      'TOKEN: @canary',
      '%canary',
    ]) {
      const text = `${shape}  slot:secrets:\n    ${line}\n`;
      const message = JSON.stringify(problemsOf(() => loadStackFile('Pulumi.glm.yaml', text)));
      expect(message, line).toContain('Pulumi.glm.yaml');
      expect(message, line).not.toContain('canary');
    }
  });
});
