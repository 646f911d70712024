import type { ResourceValidationArgs, ResourceValidationPolicy } from '@pulumi/policy';
import { slotProgram } from '../shape/names.ts';
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
    description: 'what cannot be read cannot be judged by any rule',
    enforcementLevel: 'advisory',
    validateResource: (args, report) => {
      if (isCutover(args) && reviewIn(args) === undefined) {
        report('the manifest on stdin is not known yet or cannot be read: no rule has judged the shape');
      }
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

function imageFindings({ type, props }: ResourceValidationArgs, rule: Verdict): readonly string[] {
  const name = known(props, 'name');
  if (type !== 'docker:index/remoteImage:RemoteImage' || typeof name !== 'string') return [];
  return imageRules
    .filter(({ id }) => id === rule.id)
    .flatMap(({ examineImage }) => examineImage(name) ?? []);
}

function isRemoteCommand(type: string): boolean {
  return type === 'command:remote:Command' || type === 'command:remote:CopyToRemote';
}

/** The connection, and that of the host between. */
function connectionsIn(props: Inputs): readonly { host: string; hostKey: string | undefined }[] {
  const connection = known(props, 'connection');
  return [connection, known(connection, 'proxy')].filter(isMap).map((end) => ({
    host: String(known(end, 'host') ?? 'a host not known yet'),
    hostKey: text(known(end, 'hostKey')),
  }));
}

function isCutover({ type, props }: ResourceValidationArgs): boolean {
  return isRemoteCommand(type) && (text(known(props, 'create')) ?? '').includes(`${slotProgram} cutover`);
}

let latest: { readonly manifest: string; readonly review: Review | undefined } | undefined;

/** The review of the release that a cutover sends; undefined: the resource is no cutover, or it cannot be read. */
function reviewIn(args: ResourceValidationArgs): Review | undefined {
  const manifest = isCutover(args) ? text(known(args.props, 'stdin')) : undefined;
  if (manifest === undefined) return undefined;
  // Every policy is asked about each resource in turn.
  if (latest?.manifest !== manifest) {
    const release = releaseIn(manifest);
    latest = { manifest, review: release && reviewOf(release) };
  }
  return latest.review;
}

function releaseIn(manifest: string): Release | undefined {
  try {
    return manifestSchema.parse(JSON.parse(manifest)).release;
  } catch {
    return undefined;
  }
}

/** An input, undefined where it is not there or, in a preview, not known: to look at such a one throws. */
function known(inputs: unknown, name: string): unknown {
  try {
    return isMap(inputs) ? inputs[name] : undefined;
  } catch {
    return undefined;
  }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function isMap(value: unknown): value is Inputs {
  return value !== null && typeof value === 'object';
}
