import { readFileSync } from 'node:fs';
import { remote } from '@pulumi/command';
import * as pulumi from '@pulumi/pulumi';
import { dockerShimPath } from '../agent/host-files/docker-shim.ts';
import type { HostSetup } from '../agent/host-setup.ts';
import { asRoot, runOnHost, SshFailure, shellWord } from '../remote/ssh.ts';
import type { HostConfig } from '../shape/host.ts';
import { slotProgram } from '../shape/names.ts';
import { agentBundle, type HostProgramFile, nodeForHost } from './agent-bundle.ts';
import { connectionOf } from './connection.ts';

export interface HostArgs {
  /** Plain values, not Inputs: they must be known when the plan is made. */
  readonly config: HostConfig;
  readonly agent: HostProgramFile;
  readonly node: HostProgramFile;
}

/** Where the login's copies lie until root has installed them, below its home: a folder that it alone can enter. */
const stagingFolder = '.slot-staging';
/** Node, one older Node beside it, and room. */
const neededMebibytes = 400;

/**
 * A machine made ready to hold a slot: the host program, its folders, the recovery at boot, podman's socket and
 * the docker shim. No engine is started, stopped or reconfigured by it. Destroying it is refused by the host
 * while a release holds the slot; payloads, state directories and images stay.
 */
export class Host extends pulumi.ComponentResource {
  /** Address as configured. */
  readonly host: pulumi.Output<string>;
  readonly user: pulumi.Output<string>;
  readonly service: pulumi.Output<string>;
  /** Version that the installed host program says it has. */
  readonly agentVersion: pulumi.Output<string>;
  /** File name of the agent on the host, by content. */
  readonly agent: pulumi.Output<string>;
  readonly podmanVersion: pulumi.Output<string>;
  readonly systemdVersion: pulumi.Output<string>;
  /** Folder of the image store that the engine's unit and image pulls share. */
  readonly imageStore: pulumi.Output<string>;

  constructor(name: string, { config, agent, node }: HostArgs, options?: pulumi.ComponentResourceOptions) {
    super('slot:index:Host', name, {}, options);
    const connection = connectionOf(config);
    const common = {
      host: config.name,
      login: config.user,
      slot_program: slotProgram,
    };

    const privileges = new remote.Command(
      'privileges',
      {
        connection,
        create: 'sh -s',
        stdin: script('check', {
          ...common,
          docker_shim: dockerShimPath,
          staging: stagingFolder,
          needed_mib: String(neededMebibytes),
          // Not read there: what is installed is a reason to try everything again.
          for_agent: agent.name,
          for_node: node.name,
        }),
        addPreviousOutputInEnv: false,
      },
      { parent: this },
    );

    const copies = Object.entries({ agent, node }).map(
      ([part, file]) =>
        new remote.CopyToRemote(
          `${part}-copy`,
          {
            connection,
            source: new pulumi.asset.FileAsset(file.path),
            remotePath: `${stagingFolder}/${file.name}`,
            // The copy itself does not follow the host to another machine.
            triggers: [config.address, config.sshPort, config.user, config.hostKey],
          },
          { parent: this, dependsOn: privileges, customTimeouts: { create: '2h' } },
        ),
    );

    // Of both commands that follow: a refusal has to come before the first resource is gone, and an installation
    // whose access was never proved has to be removable too. Were they replaced, the old one's removal must come
    // before the new one's installation.
    const teardown = teardownCommand(config);
    const setup: HostSetup = { service: config.service };
    const install = new remote.Command(
      'install',
      {
        connection,
        create: `${asRoot(config.user, 'sh -s')} "$HOME/${stagingFolder}"`,
        stdin: script('install', {
          ...common,
          agent: agent.name,
          agent_sha256: agent.sha256,
          node: node.name,
          node_sha256: node.sha256,
          setup: JSON.stringify(setup),
        }),
        delete: teardown,
        addPreviousOutputInEnv: false,
      },
      { parent: this, dependsOn: copies, deleteBeforeReplace: true },
    );

    const checked = privileges.stdout.apply(valuesIn);
    const access = new remote.Command(
      'access',
      {
        connection,
        create: 'sh -s',
        stdin: checked.apply((facts) =>
          script('access', { ...common, store: facts.store ?? '', for_agent: agent.name }),
        ),
        delete: teardown,
        addPreviousOutputInEnv: false,
      },
      { parent: this, dependsOn: install, deleteBeforeReplace: true },
    );

    this.host = pulumi.output(config.address);
    this.user = pulumi.output(config.user);
    this.service = pulumi.output(config.service);
    this.agent = pulumi.output(agent.name);
    this.agentVersion = access.stdout.apply((text) => valuesIn(text).agent ?? 'unknown');
    this.imageStore = access.stdout.apply((text) => valuesIn(text).store ?? 'unknown');
    this.podmanVersion = checked.apply((facts) => facts.podman ?? 'unknown');
    this.systemdVersion = checked.apply((facts) => facts.systemd ?? 'unknown');
    this.registerOutputs({
      host: this.host,
      user: this.user,
      service: this.service,
      agent: this.agent,
      agentVersion: this.agentVersion,
      podmanVersion: this.podmanVersion,
      systemdVersion: this.systemdVersion,
      imageStore: this.imageStore,
    });
  }
}

/**
 * The host stack. Asks for the host before any resource is planned, because a changed host key, for one, is
 * explained better here than by the provider.
 * @throws when the stack has another name than the host, by which shapes and messages refer to both; when the
 *   login does not succeed, except that a preview only warns of a host that does not answer
 */
export async function createHost(config: HostConfig, stack: string): Promise<Host> {
  if (stack !== config.name) {
    throw new pulumi.RunError(
      `Pulumi.${stack}.yaml: slot:host.name is ${config.name}, but must be the name of the stack, ${stack}: ` +
        'shapes find their host by it',
    );
  }
  const [agent, node] = await Promise.all([agentBundle(), nodeForHost(note), tryLogin(config)]);
  return new Host(config.name, { config, agent, node });
}

async function tryLogin(config: HostConfig): Promise<void> {
  try {
    await runOnHost(config, 'true', { timeoutSeconds: 20 });
  } catch (error) {
    if (!(error instanceof SshFailure)) throw error;
    if (!pulumi.runtime.isDryRun() || error.kind !== 'unreachable') throw new pulumi.RunError(error.message);
    await pulumi.log.warn(`${error.message}: the plan is made without it, \`pulumi up\` will fail`);
  }
}

function note(line: string): void {
  void pulumi.log.info(line, undefined, undefined, true);
}

/** Pulumi gives the same standard input to it as to the installation, which it must not wait for. */
function teardownCommand({ name, user, service }: HostConfig): string {
  const teardown = asRoot(user, `${slotProgram} host-teardown --service ${service}`);
  return (
    `if test -e ${slotProgram}; then ${teardown} </dev/null; ` +
    `else echo ${shellWord(`${name}: no host program there, nothing to remove`)}; fi`
  );
}

/** A script for `sh -s` whose values come from here, as assignments before its text. */
function script(name: 'check' | 'install' | 'access', values: Readonly<Record<string, string>>): string {
  const text = readFileSync(new URL(`./host-scripts/${name}.sh`, import.meta.url), 'utf8');
  const assignments = Object.entries(values).map(([variable, value]) => `${variable}=${shellWord(value)}`);
  return `${assignments.join('\n')}\n${text}`;
}

/** Lines `name=value` of a script's output. */
function valuesIn(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries([...text.matchAll(/^([a-z]+)=(.*)$/gm)].map(([, name, value]) => [name, value]));
}
