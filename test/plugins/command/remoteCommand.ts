import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Resource, Status, Values } from '../provider.ts';
import { type Connection, overSsh, withDefaults } from '../ssh.ts';
import { type Finished, follow, type Logging, outputsOf } from './run.ts';

interface Inputs {
  create?: string;
  update?: string;
  delete?: string;
  stdin?: string;
  logging?: Logging;
  environment?: Record<string, string>;
  addPreviousOutputInEnv?: boolean;
  connection: Connection;
}
interface Outputs {
  stdout?: string;
  stderr?: string;
}

export const remoteCommand: Resource = {
  replacedBy: ['triggers'],
  determines: ['stdout', 'stderr'],
  check: (inputs) => ({ ...inputs, connection: withDefaults(inputs.connection as Partial<Connection>) }),
  async create(inputs, status) {
    const outputs = await run(inputs, (inputs as Values & Inputs).create, {}, status);
    return { id: randomBytes(8).toString('hex'), outputs: { ...inputs, ...outputs } };
  },
  async update(inputs, state, status) {
    const { create, update } = inputs as Values & Inputs;
    return { ...inputs, ...(await run(inputs, update ?? create, state as Outputs, status)) };
  },
  async delete(state, status) {
    await run(state, (state as Values & Inputs).delete, state as Outputs, status);
  },
};

async function run(
  values: Values,
  command: string | undefined,
  previous: Outputs,
  status: Status,
): Promise<Outputs> {
  const unchanged = { stdout: previous.stdout ?? '', stderr: previous.stderr ?? '' };
  if (command === undefined) return unchanged;
  const inputs = values as Values & Inputs;
  const connection = withDefaults(inputs.connection);
  const { environment = {} } = inputs;
  const previousOutput = inputs.addPreviousOutputInEnv === false ? {} : previousIn(unchanged);
  const finished = await overSsh(connection, status, async (start) => {
    const remote = (text: string, variables: Record<string, string>) =>
      start('ssh', ['--', connection.host, text], variables);
    await refuseWhatHostDoesNotAccept(environment, remote);
    const child = remote(command, { ...previousOutput, ...environment });
    return follow(child, inputs.stdin, inputs.logging, status);
  });
  return outputsOf(finished, command, failureOf(finished));
}

function previousIn(outputs: { stdout: string; stderr: string }): Record<string, string> {
  return {
    ...(outputs.stdout && { PULUMI_COMMAND_STDOUT: outputs.stdout }),
    ...(outputs.stderr && { PULUMI_COMMAND_STDERR: outputs.stderr }),
  };
}

/** The official plugin is told by the host when a variable is not accepted; ssh is not, so it has to be looked up. */
async function refuseWhatHostDoesNotAccept(
  environment: Record<string, string>,
  remote: (text: string, variables: Record<string, string>) => ChildProcess,
): Promise<void> {
  const names = Object.keys(environment);
  if (names.length === 0) return;
  const command = names.map((name) => `printenv ${name} > /dev/null || { echo ${name}; exit 1; }`).join('\n');
  const { code, stdout } = await follow(remote(command, environment), undefined, 'none', () => {});
  if (code === 0) return;
  throw new Error(
    `could not set environment variable ${JSON.stringify(stdout.trim())}: ssh: setenv failed` +
      ` (the host's sshd accepts only what its AcceptEnv names)`,
  );
}

function failureOf({ code, stderr }: Finished): string {
  const lost = /(Shared connection to .* closed|mux_client_|Broken pipe|closed by remote host)/;
  if (code === 255 && lost.test(stderr))
    return 'wait: remote command exited without exit status or exit signal';
  return `Process exited with status ${code}`;
}
