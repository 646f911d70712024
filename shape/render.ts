import Handlebars from 'handlebars';
import { encodeSize, encodeText, encodeWord } from './systemd.ts';

/** Texts of the templates, by what they render. */
export interface Templates {
  readonly service: string;
  readonly target: string;
}

/** What the unit's template is given: plain values, which the template's helpers encode. */
export interface UnitView {
  readonly service: string;
  readonly target: string;
  readonly container: string;
  readonly shortName: string;
  readonly logFolder: string;
  readonly containerIdPath: string;
  /** undefined while the identity itself is computed. */
  readonly identity: { readonly label: string; readonly value: string } | undefined;
  readonly image: string;
  /** Arguments after the image, a flag and what follows it in one line. */
  readonly argumentLines: readonly (readonly string[])[];
  readonly environment: readonly { readonly name: string; readonly value: string }[];
  readonly secrets: readonly { readonly variable: string; readonly name: string }[];
  readonly volumes: readonly {
    readonly source: string;
    readonly target: string;
    readonly access: 'ro' | 'rw';
  }[];
  readonly deviceFiles: readonly string[];
  readonly securityOptions: readonly string[];
  readonly hostIpc: boolean;
  readonly pidsLimit: number;
  readonly memlock: string;
  readonly healthUrl: string;
}

/** Text of the service unit. @throws RangeError for a value that no unit file can hold */
export function renderService(templates: Templates, view: UnitView): string {
  return render(templates.service, view);
}

/** Text of the target that pulls the engine in at boot. */
export function renderTarget(templates: Templates, view: { service: string; unit: string }): string {
  return render(templates.target, view);
}

/**
 * The engine's environment as a reviewer reads it: a line per variable, sorted, values as they are; `[secret]`
 * stands for those of podman's secrets.
 */
export function renderEnvironment(
  environment: Readonly<Record<string, string>>,
  secrets: readonly { readonly variable: string }[],
): string {
  return Object.entries({
    ...environment,
    ...Object.fromEntries(secrets.map(({ variable }) => [variable, '[secret]'])),
  })
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}

const handlebars = Handlebars.create();
handlebars.registerHelper({
  /** Its arguments joined to one word of an Exec line. */
  word: (...parts: unknown[]) => encodeWord(parts.slice(0, -1).join('')),
  words: (list: readonly string[]) => list.map(encodeWord).join(' '),
  text: (...parts: unknown[]) => encodeText(parts.slice(0, -1).join('')),
  size: encodeSize,
});

/** By its text; compiling one takes ten times as long as filling it. */
const compiled = new Map<string, HandlebarsTemplateDelegate>();

function render(template: string, view: object): string {
  const known = compiled.get(template);
  if (known !== undefined) return known(view);
  const fresh = handlebars.compile<object>(template, { noEscape: true, strict: true });
  compiled.set(template, fresh);
  return fresh(view);
}
