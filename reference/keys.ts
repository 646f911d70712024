import type { Schema } from './schemas.ts';

/** A key of a file as a reader meets it. */
export interface Key {
  /** Below the described value, e.g. `mounts[].source`, `state.<name>`. */
  readonly path: string;
  readonly type: string;
  /** Undefined: the schema does not say. */
  readonly meaning: string | undefined;
  readonly isRequired: boolean;
  /** Undefined: there is none. */
  readonly fallback: unknown;
  readonly schema: Schema;
}

/** All keys below an object's schema, in the order of the schema; of a union only its own. */
export function keysBelow(schema: Schema, path = ''): readonly Key[] {
  const below = (inner: Schema, at: string): readonly Key[] => {
    if (inner.properties !== undefined) return keysBelow(inner, `${at}.`);
    if (inner.items !== undefined) return below(inner.items as Schema, `${at}[]`);
    const values = inner.additionalProperties;
    return typeof values === 'object' ? below(values as Schema, `${at}.<${typeOf(namesOf(inner))}>`) : [];
  };
  return Object.entries(schema.properties ?? {}).flatMap(([name, value]) => {
    const field = value as Schema;
    const key: Key = {
      path: `${path}${name}`,
      type: typeOf(field),
      meaning: field.description,
      isRequired: schema.required?.includes(name) ?? false,
      // That of a map of known keys is what its keys have.
      fallback: field.properties === undefined ? field.default : undefined,
      schema: field,
    };
    return [key, ...below(field, key.path)];
  });
}

/** Keys of which the schema does not say what they mean; a constant means itself. */
export function undocumented(keys: readonly Key[]): readonly string[] {
  return keys.filter(({ meaning, schema }) => !meaning && schema.const === undefined).map(({ path }) => path);
}

export function typeOf(schema: Schema): string {
  if (schema.title !== undefined) return schema.title;
  if (schema.const !== undefined) return `\`${String(schema.const)}\``;
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(' or ');
  const options = (schema.oneOf ?? schema.anyOf) as Schema[] | undefined;
  if (options?.every(({ properties }) => properties?.kind !== undefined)) {
    return `map of kind ${options.map(({ properties }) => typeOf(properties?.kind as Schema)).join(' or ')}`;
  }
  if (options !== undefined) return options.map(typeOf).join(' or ');
  switch (schema.type) {
    case 'array':
      return `list of ${typeOf(schema.items as Schema)}`;
    case 'object': {
      const values = schema.additionalProperties;
      if (schema.properties !== undefined || typeof values !== 'object') return 'map';
      return `map of ${typeOf(namesOf(schema))} to ${typeOf(values as Schema)}`;
    }
    case 'integer':
      return ['whole number', ...limitsOf(schema)].join(', ');
    case 'number':
      return ['number', ...limitsOf(schema)].join(', ');
    case 'boolean':
      return 'true or false';
    case 'string':
      return schema.pattern === undefined ? 'text' : `text like \`${schema.pattern}\``;
    default:
      return 'any value';
  }
}

function namesOf(map: Schema): Schema {
  return (map.propertyNames ?? { type: 'string' }) as Schema;
}

function limitsOf({ minimum, exclusiveMinimum, maximum, exclusiveMaximum }: Schema): readonly string[] {
  return [
    ...(minimum === undefined ? [] : [`at least ${minimum}`]),
    ...(exclusiveMinimum === undefined ? [] : [`above ${exclusiveMinimum}`]),
    ...(maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? [] : [`at most ${maximum}`]),
    ...(exclusiveMaximum === undefined ? [] : [`below ${exclusiveMaximum}`]),
  ];
}
