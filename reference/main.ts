import { writeFileSync } from 'node:fs';
import { generated } from './generated.ts';

for (const [file, text] of Object.entries(generated())) {
  writeFileSync(new URL(`../${file}`, import.meta.url), text);
  console.log(file);
}
