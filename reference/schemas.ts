import * as z from 'zod';
import { stackFileSchema } from '../shape/configuration.ts';
import { imageKnowledgeSchema } from '../shape/engines/image-knowledge.ts';
import { type Form, forms } from '../shape/forms.ts';
import { modelFileSchema } from '../shape/model.ts';
import { suppliedKeys } from '../shape/operator-supplied.ts';
import { isUnconditional } from '../shape/rules/rule-ids.ts';

/** JSON Schema, with `patternErrorMessage` of the editors' language server. */
export type Schema = z.core.JSONSchema.BaseSchema & { patternErrorMessage?: string };

/** Schema of `Pulumi.<stack>.yaml`, for editors. */
export function stackSchema(): Schema {
  const schema = editorSchema(stackFileSchema);
  const config = schemaAt(schema, 'config');
  // Keys of other packages, in their namespaces.
  config.patternProperties = { '^(?!slot:)[^:\\s]+:[^:\\s]+$': {} };
  for (const kind of ['host', 'shape'] as const) {
    const described = schemaAt(config, `slot:${kind}`);
    for (const key of suppliedKeys(kind)) letBeMissing(described, key.split('.'));
  }
  const { propertyNames } = schemaAt(config, 'slot:shape', 'exceptions');
  const rules = propertyNames as Schema;
  rules.enum = (rules.enum ?? []).filter((id) => !isUnconditional(String(id)));
  return schema;
}

/** Schema of `models/<name>.yaml`, for editors. */
export function modelSchema(): Schema {
  return editorSchema(modelFileSchema);
}

/** Schema of `images/<name>.yaml`, for editors. */
export function imageSchema(): Schema {
  return editorSchema(imageKnowledgeSchema);
}

/** The schema of a key below that of an object. */
export function schemaAt(schema: Schema, ...path: readonly string[]): Schema {
  return path.reduce((inner, key) => {
    const field = inner.properties?.[key];
    if (typeof field !== 'object') throw new Error(`the schema has no key ${path.join('.')}`);
    return field;
  }, schema);
}

/** By name; the forms of all values that a file can hold. */
export function formsIn(): ReadonlyMap<string, Form> {
  const found = new Map<string, Form>();
  for (const schema of [stackFileSchema, modelFileSchema, imageKnowledgeSchema]) {
    z.toJSONSchema(schema, {
      io: 'input',
      override: ({ zodSchema }) => {
        const form = forms.get(zodSchema);
        if (form !== undefined) found.set(form.name, form);
      },
    });
  }
  return found;
}

function editorSchema(schema: z.ZodType): Schema {
  return z.toJSONSchema(schema, {
    target: 'draft-7',
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => {
      const form = forms.get(zodSchema);
      if (form === undefined) return;
      const { name, limit, examples, pattern, fitsAnyMeaning = true } = form;
      Object.assign(jsonSchema, {
        title: name,
        ...(fitsAnyMeaning && examples.length > 0 && { examples: [...examples] }),
        ...(pattern !== undefined && { pattern }),
        patternErrorMessage: limit,
      });
    },
  }) as Schema;
}

/**
 * An editor has no such thing as a draft: what only the operator can supply is missing in it without complaint, and
 * so is a map that needs nothing else.
 */
function letBeMissing(schema: Schema, [key = '', ...rest]: readonly string[]): void {
  for (const option of [schema, ...((schema.oneOf ?? []) as Schema[])]) {
    const field = option.properties?.[key];
    if (typeof field !== 'object') continue;
    if (rest.length > 0) letBeMissing(field, rest);
    if (rest.length > 0 && field.required?.length !== 0) continue;
    option.required = (option.required ?? []).filter((name) => name !== key);
  }
}
