import type { ResourceValidationArgs, ResourceValidationPolicy } from '@pulumi/policy';
import { manifestSchema, type Release } from '../shape/release.ts';
import { type Review, reviewOf, type Violation } from '../shape/review.ts';
import { reviewText } from '../shape/review-text.ts';
import { connectionRules } from '../shape/rules/connection.ts';
import { imageRules } from '../shape/rules/image.ts';
import type { Verdict } from '../shape/rules/rule.ts';
import { rules } from '../shape/rules/rules.ts';

type Inputs = Readonly<Record<string, unknown>>;

/** A policy for each rule, by its id: `refuse` is mandatory, `warn` advisory. */
export const policies: readonly ResourceValidationPolicy[] = [
  ...rules.map((rule) => policyOf(rule, (args) => [...findingsOf(args, rule), ...imageFindings(args, rule)])),
  ...connectionRules.map((rule) =>
    policyOf(rule, ({ type, props }) =>
      isRemoteCommand(type)
        ? connectionsIn(props).flatMap((connection) => rule.examine(connection) ?? [])
        : [],
    ),
  ),
  {
    name: 'exceptions',
    description: 'what a shape is excepted from is said each time, with its reason',
    enforcementLevel: 'advisory',
    validateResource: (args, report) => {
      const review = reviewIn(args);
      if (review === undefined) return;
      const excepted = review.violations.filter(({ exception }) => exception !== undefined);
      for (const text of reviewText({ ...review, violations: excepted })) report(text);
    },
  },
  {
    name: 'manifest-readable',
    description: 'what cannot be read cannot be judged by any rule, and the host would refuse it',
    enforcementLevel: 'mandatory',
    validateResource: (args, report) => {
      if (cutoverIn(args) === 'broken') report('the manifest on stdin cannot be read: no rule has judged it');
    },
  },
  {
    name: 'manifest-known',
    description: 'what is not known yet cannot be judged by any rule',
    enforcementLevel: 'advisory',
    validateResource: (args, report) => {
      if (cutoverIn(args) === 'unknown')
        report('the manifest on stdin is not known yet: no rule has judged it');
    },
  },
];

function policyOf(
  { id, severity, reason, evidence, remedy }: Verdict,
  examine: (args: ResourceValidationArgs) => readonly string[],
): ResourceValidationPolicy {
  return {
    name: id,
    description: `${reason} (${evidence})`,
    remediationSteps: remedy,
    enforcementLevel: severity === 'refuse' ? 'mandatory' : 'advisory',
    validateResource: (args, report) => {
      for (const found of examine(args)) report(`${found}; ${remedy}`);
    },
  };
}

function findingsOf(args: ResourceValidationArgs, rule: Verdict): readonly string[] {
  const broken = (violation: Violation): boolean =>
    violation.rule.id === rule.id && violation.exception === undefined;
  return (
    reviewIn(args)
      ?.violations.filter(broken)
      .map(({ found }) => found) ?? []
  );
}

/** Where resources name an image. */
const imageNames: Readonly<Record<string, string>> = {
  'docker:index/remoteImage:RemoteImage': 'name',
  'docker:index/container:Container': 'image',
};

function imageFindings({ type, props }: ResourceValidationArgs, rule: Verdict): readonly string[] {
  const key = Object.hasOwn(imageNames, type) ? imageNames[type] : undefined;
  const name = key && known(props, key);
  // The id of an image that is there already is its content.
  if (typeof name !== 'string' || /^sha256:[0-9a-f]{64}$/.test(name)) return [];
  return imageRules
    .filter(({ id }) => id === rule.id)
    .flatMap(({ examineImage }) => examineImage(name) ?? []);
}

function isRemoteCommand(type: string): boolean {
  return type.startsWith('command:remote:');
}

/** The connection, and that of the host between. */
function connectionsIn(props: Inputs): readonly { host: string; hostKey: string | undefined }[] {
  const connection = known(props, 'connection');
  return [connection, known(connection, 'proxy')].filter(isMap).map((end) => ({
    host: text(known(end, 'host')) ?? 'a host not known yet',
    hostKey: text(known(end, 'hostKey')),
  }));
}

/** The program's word for it, in whichever command it stands. */
const runsCutover = /\bslot\b[\s\S]*(?<=[\s"'])cutover(?=$|[\s"';&|)])/;

function isManifest(text: string): boolean {
  return /"release"\s*:/.test(text) && /"(?:claim|engineIdentity)"\s*:/.test(text);
}

let latest: { readonly manifest: string; readonly review: Review | 'broken' } | undefined;

/**
 * The review of the release that a cutover sends, known by its manifest or by its command; undefined: the resource is
 * no cutover.
 */
function cutoverIn({ type, props }: ResourceValidationArgs): Review | 'broken' | 'unknown' | undefined {
  if (!/^command:(?:remote|local):Command$/.test(type)) return undefined;
  const stdin = known(props, 'stdin');
  const manifest = text(stdin) ?? '';
  const commands = ['create', 'update'].map((key) => text(known(props, key)) ?? '');
  if (!isManifest(manifest) && !commands.some((command) => runsCutover.test(command))) return undefined;
  if (stdin === notKnown) return 'unknown';
  // Every policy is asked about each resource in turn.
  if (latest?.manifest !== manifest) latest = { manifest, review: reviewOfManifest(manifest) };
  return latest.review;
}

function reviewIn(args: ResourceValidationArgs): Review | undefined {
  const cutover = cutoverIn(args);
  return typeof cutover === 'object' ? cutover : undefined;
}

function reviewOfManifest(manifest: string): Review | 'broken' {
  const release = releaseIn(manifest);
  return release === undefined ? 'broken' : reviewOf(release);
}

function releaseIn(manifest: string): Release | undefined {
  try {
    return manifestSchema.parse(JSON.parse(manifest)).release;
  } catch {
    return undefined;
  }
}

const notKnown = Symbol('an input that a preview does not know');

/** An input, undefined where it is not there. To look at one that a preview does not know throws. */
function known(inputs: unknown, name: string): unknown {
  try {
    return isMap(inputs) ? inputs[name] : undefined;
  } catch {
    return notKnown;
  }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function isMap(value: unknown): value is Inputs {
  return value !== null && typeof value === 'object';
}
