import { type FileKind, howToSupply, suppliedKeys } from '../shape/operator-supplied.ts';
import { isUnconditional } from '../shape/rules/rule-ids.ts';
import { rules } from '../shape/rules/rules.ts';
import { type Key, keysBelow } from './keys.ts';
import { formsIn, imageSchema, modelSchema, type Schema, schemaAt, stackSchema } from './schemas.ts';

/** Text of `docs/configuration.md`: all that can be configured, from the schemas that it is validated by. */
export function configurationPage(): string {
  const stack = stackSchema();
  const config = schemaAt(stack, 'config');
  const host = schemaAt(config, 'slot:host');
  const shape = schemaAt(config, 'slot:shape');
  const engines = (schemaAt(shape, 'engine').oneOf ?? []) as Schema[];
  return [
    introduction,
    '## The file',
    table(keysBelow(stack).filter(({ path }) => !path.startsWith('config.'))),
    'Below `config`, besides the keys of other packages:',
    table(keysBelow(config).filter(({ path }) => !/^slot:(?:host|shape)\./.test(path))),
    '## slot:host',
    host.description ?? '',
    table(keysBelow(host), suppliedKeys('host')),
    supplied('host', suppliedKeys('host')),
    '## slot:shape',
    shape.description ?? '',
    table(keysBelow(shape), suppliedKeys('shape')),
    supplied(
      'shape',
      suppliedKeys('shape').filter((key) => !key.startsWith('engine.')),
    ),
    ...engines.flatMap((engine) => {
      const kind = String(schemaAt(engine, 'kind').const);
      const below = suppliedKeys('shape').flatMap((key) => (key.startsWith('engine.') ? key.slice(7) : []));
      const keys = keysBelow(engine);
      const mine = below.filter((key) => keys.some(({ path }) => path === key));
      return [
        `### slot:shape.engine of kind ${kind}`,
        table(keys, mine),
        supplied(
          'shape',
          mine.map((key) => `engine.${key}`),
        ),
      ];
    }),
    secrets,
    '## models/\\<name>.yaml',
    'What is on record of a model, whichever shape serves it; a shape names it by its key `model`.',
    table(keysBelow(modelSchema())),
    '## images/\\<name>.yaml',
    'What is known of an image, found by its digest: of files that begin the digest the one that names most of it ' +
      'counts. `npx slot image learn <shape>` asks the image on its host and writes the file.',
    table(keysBelow(imageSchema())),
    '## Forms',
    'What a type of the tables above stands for.',
    formsTable(),
    '## Rules',
    'What a shape is judged by. `refuse`: nothing is touched, unless the shape is excepted by the rule’s id, with a ' +
      'reason, in `slot:shape.exceptions`. `refuse, always`: no shape can be excepted. `warn`: it is said.',
    rulesTable(),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
    .concat('\n');
}

const introduction = `# Configuration

Written by \`npm run reference\` from the schemas that the files are validated by. Do not edit it.

A stack is a file: \`Pulumi.<host>.yaml\` describes a machine, \`Pulumi.<shape>.yaml\` what one serves;
\`experiments/Pulumi.<shape>.yaml\` is a shape of the same form, given to Pulumi with \`--config-file\`. All that is
wrong in a shape's file, its host's and its model's is told at once, each with file, key, value, limit and what to do.

An editor completes the keys and marks what is wrong while you type, if it has a YAML language server (in VS Code: the
extension YAML of Red Hat; in Neovim: \`yamlls\`). The first line of each file names its schema; in \`models/\` it is \`./model.schema.json\`, in \`images/\`
\`./image.schema.json\`:

    # yaml-language-server: $schema=./stack.schema.json

What only the operator can know is **operator-supplied**: it may be missing while a shape is reviewed (\`slot plan\`),
and must be there for \`pulumi preview\`.

Values are literal bytes: what is written is what the engine gets. So a word is refused that readers of YAML type
differently, with the quotes that settle it:

| written | Pulumi takes it for | other readers for |
| --- | --- | --- |
| \`0600\` | 384 | 600, or text |
| \`0x1F40\`, \`1_000\`, \`12345e6\` | 8000, 1000, 12345000000 | text |
| \`1.20\` where text is wanted | 1.2 | 1.2 |
| \`2026-01-01\` | the text \`2026-01-01 00:00:00 +0000 UTC\` | a date, or text |
| \`yes\`, \`on\`, \`y\` | text | true |
| \`9007199254740993\` | 9007199254740992 in JavaScript | the number |
| \`0000:03:00.0\` | text | a number to base 60 |

\`pulumi config set\` writes the whole file anew: \`0600\` becomes \`384\` in it. So correct what is refused before that.

Refused as well: unknown keys (with the nearest known one), keys that are there twice or are no text, aliases, merge
keys and tags, numbers where a size or a duration with its unit is wanted, secrets
(\`secure:\`) anywhere but in \`slot:secrets\`.`;

const secrets = `## slot:secrets

Values of the variables that \`slot:shape.secrets\` names, one by one:

    pulumi config set --secret --path slot:secrets.HF_TOKEN <value> -s <shape>

Each reaches the engine as a podman secret of the host's root. No message, plan or report repeats one.`;

function table(keys: readonly Key[], operatorSupplied: readonly string[] = []): string {
  return rows(
    ['key', 'type', 'default', 'meaning'],
    keys.map(({ path, type, isRequired, fallback, meaning = '' }) => [
      `\`${path}\``,
      type,
      operatorSupplied.includes(path)
        ? '**operator-supplied**'
        : isRequired
          ? '**required**'
          : spelled(fallback),
      meaning,
    ]),
  );
}

/** A default as it would be written. */
function spelled(fallback: unknown): string {
  if (fallback === undefined) return '';
  if (Array.isArray(fallback)) return fallback.length === 0 ? 'none' : fallback.map(spelled).join(', ');
  if (fallback !== null && typeof fallback === 'object') {
    const entries = Object.entries(fallback).map(([key, value]) => `${key}: ${String(value)}`);
    return entries.length === 0 ? 'none' : `\`{${entries.join(', ')}}\``;
  }
  return `\`${String(fallback)}\``;
}

function supplied(kind: FileKind, keys: readonly string[]): string {
  return keys
    .map((key) => {
      const known = { file: `Pulumi.<${kind}>.yaml`, value: {} };
      const how = howToSupply(kind, key.split('.'), known) ?? '';
      return [`\`${key}\` is operator-supplied:`, '', how.replaceAll(/^/gm, '    ')].join('\n');
    })
    .join('\n\n');
}

function formsTable(): string {
  const forms = [...formsIn().values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  return rows(
    ['form', 'limit', 'e.g.'],
    forms.map(({ name, limit, examples }) => [
      name,
      limit,
      examples.map((example) => `\`${example}\``).join(', '),
    ]),
  );
}

function rulesTable(): string {
  return rows(
    ['rule', 'severity', 'why', 'evidence'],
    rules.map(({ id, severity, reason, evidence }) => [
      `\`${id}\``,
      isUnconditional(id) ? `${severity}, always` : severity,
      reason,
      evidence,
    ]),
  );
}

function rows(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const row = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
  return [row(head), `| ${head.map(() => '---').join(' | ')} |`, ...lines.map(row)].join('\n');
}
