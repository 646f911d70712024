import { configurationPage } from './page.ts';
import { imageSchema, modelSchema, stackSchema } from './schemas.ts';

/** Text of each file that is made from the schemas, by its path in the project. */
export function generated(): Readonly<Record<string, string>> {
  return {
    'docs/configuration.md': configurationPage(),
    'stack.schema.json': `${JSON.stringify(stackSchema(), null, 2)}\n`,
    'images/image.schema.json': `${JSON.stringify(imageSchema(), null, 2)}\n`,
    'models/model.schema.json': `${JSON.stringify(modelSchema(), null, 2)}\n`,
  };
}
