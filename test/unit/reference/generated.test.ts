import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { generated } from '../../../reference/generated.ts';
import { keysBelow, undocumented } from '../../../reference/keys.ts';
import { imageSchema, modelSchema, type Schema, schemaAt, stackSchema } from '../../../reference/schemas.ts';

const made = generated();
const stack = stackSchema();
const engines = schemaAt(stack, 'config', 'slot:shape', 'engine').oneOf as Schema[];

describe('what is made from the schemas', () => {
  it.each(Object.keys(made))('is %s as it lies in the project (npm run reference writes it anew)', (file) => {
    expect(readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8')).toBe(made[file]);
  });

  it.each([
    ['a stack file', stack],
    ['an engine', { oneOf: engines }],
    ['a model', modelSchema()],
    ['an image', imageSchema()],
  ])('says of every key of %s what it means', (_what, schema) => {
    const schemas = (schema.oneOf ?? [schema]) as Schema[];
    expect(schemas.flatMap((one) => undocumented(keysBelow(one)))).toEqual([]);
  });

  it('finds a key that nothing is said of, however deep it lies', () => {
    const key: Schema = { type: 'string' };
    const list: Schema = { description: 'said', type: 'array', items: { properties: { silent: key } } };
    const map: Schema = { description: 'said', additionalProperties: { properties: { silent: key } } };
    expect(undocumented(keysBelow({ properties: { list, map } }))).toEqual([
      'list[].silent',
      'map.<text>.silent',
    ]);
  });

  it('says each key of the configuration', () => {
    const page = made['docs/configuration.md'] ?? '';
    const keys = [stack, ...engines, modelSchema(), imageSchema()].flatMap((schema) => keysBelow(schema));
    expect(keys.length).toBeGreaterThan(80);
    for (const { path } of keys) {
      expect(page).toContain(`\`${path.replace(/^config\.(?:slot:(?:host|shape)\.)?/, '')}\``);
    }
  });

  it('shows an example only at keys that it is one for', () => {
    const examples = [stack, ...engines].flatMap((schema) =>
      keysBelow(schema).flatMap(({ path, schema: field }) =>
        ((field.examples ?? []) as unknown[]).map((example) => `${path} ${String(example)}`),
      ),
    );
    expect(examples.filter((line) => line.endsWith(' glm47'))).toEqual([
      'toolParser glm47',
      'reasoningParser glm47',
    ]);
    expect(examples.filter((line) => line.endsWith(' glm-w4a16'))).toEqual([]);
    expect(examples.filter((line) => line.endsWith(' 7770'))).toEqual([]);
    expect(examples).toContain('config.slot:host.gpuArchitecture gfx1201');
  });

  it('marks the rules that no shape is excepted from', () => {
    const lines = (made['docs/configuration.md'] ?? '').split('\n');
    const severity = (id: string) => lines.find((line) => line.startsWith(`| \`${id}\` |`))?.split(' | ')[1];
    expect(severity('image-by-digest')).toBe('refuse, always');
    expect(severity('glm-kv-cache-fp8')).toBe('refuse');
  });

  it('refuses unknown keys in every map of known ones', () => {
    const open: string[] = [];
    const look = (schema: Schema, path: string): void => {
      if (schema.properties && schema.additionalProperties !== false) open.push(path);
      for (const [name, inner] of Object.entries(schema.properties ?? {}))
        look(inner as Schema, `${path}.${name}`);
      for (const inner of [...(schema.oneOf ?? []), ...(schema.anyOf ?? [])]) look(inner as Schema, path);
    };
    look(stack, 'stack');
    look(modelSchema(), 'model');
    look(imageSchema(), 'image');
    expect(open).toEqual([]);
  });
});
