import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import type { LabKind } from './host.ts';
import { attachLab, canRunLab, createLab, type Lab, listLabs, takeDown } from './lab.ts';
import { sshArguments } from './ssh.ts';

const USAGE = `usage: npm run lab <command> -- [options]

  up      make a host and leave it running
  down    end a host and remove all of it
  reset   end a host and make a fresh one of the same name and kind
  ssh     a shell on the host, or what follows --:  npm run lab ssh -- -- systemctl status
  status  the hosts of this machine

  --kind nspawn|vm   for up: a container on this kernel (default), or a virtual machine
  --name NAME        default lab-0
  --all              for down: every host that no living process needs`;

async function main(words: string[]): Promise<number> {
  const split = words.indexOf('--');
  const remote = split === -1 ? [] : words.slice(split + 1);
  const { values, positionals } = parseArgs({
    args: split === -1 ? words : words.slice(0, split),
    allowPositionals: true,
    options: {
      kind: { type: 'string', default: 'nspawn' },
      name: { type: 'string', default: 'lab-0' },
      all: { type: 'boolean', default: false },
    },
  });
  const { name, all } = values;
  if (values.kind !== 'nspawn' && values.kind !== 'vm')
    throw new Error(`--kind ${values.kind}: there are nspawn and vm`);
  const [command, ...rest] = positionals;
  if (rest.length > 0) throw new Error(`${rest.join(' ')}: not understood\n\n${USAGE}`);

  switch (command) {
    case 'up': {
      const existing = (await listLabs()).find((entry) => entry.name === name && !entry.stale);
      const lab = existing ? await attachLab(name) : await up(values.kind, name);
      await lab.registry.start();
      describe(lab);
      return 0;
    }
    case 'down': {
      for (const one of all ? await labsToEnd() : [name]) await takeDown(one);
      return 0;
    }
    case 'reset': {
      const existing = (await listLabs()).find((entry) => entry.name === name);
      await takeDown(name);
      describe(await up(existing?.kind ?? values.kind, name));
      return 0;
    }
    case 'ssh':
      return ssh(await attachLab(name), remote);
    case 'status': {
      const labs = await listLabs();
      if (labs.length === 0) console.log('no lab is up');
      for (const lab of labs) console.log(await statusLine(lab.name, lab.kind, lab.ownerPid, lab.stale));
      return 0;
    }
    default:
      console.error(command === undefined ? USAGE : `${command}: no such command\n\n${USAGE}`);
      return 2;
  }
}

async function up(kind: LabKind, name: string): Promise<Lab> {
  const progress = (message: string) => console.error(message);
  const ability = await canRunLab(kind, progress);
  if (!ability.ok) throw new Error(ability.reason);
  return createLab({ kind, name, progress, outlivesProcess: true });
}

async function labsToEnd(): Promise<string[]> {
  const labs = await listLabs();
  for (const lab of labs) {
    if (lab.ownerPid !== undefined)
      console.error(`${lab.name} is left up: process ${lab.ownerPid} uses it (--name ${lab.name} ends it)`);
  }
  return labs.filter((lab) => lab.ownerPid === undefined).map((lab) => lab.name);
}

function describe(lab: Lab): void {
  console.log(`${lab.name} (${lab.kind}) is up
  address   ${lab.address}${lab.sshPort === 22 ? '' : `, ssh port ${lab.sshPort}`}
  login     ${lab.user}, key ${lab.privateKeyPath}
  host key  ${lab.hostKey}
  engine    ${lab.engineUrl}`);
}

async function statusLine(
  name: string,
  kind: LabKind,
  ownerPid: number | undefined,
  stale: boolean,
): Promise<string> {
  const owner = stale
    ? 'left behind by a process that ended'
    : ownerPid === undefined
      ? 'npm run lab up'
      : `process ${ownerPid}`;
  const state = await attachLab(name)
    .then(async (lab) => {
      const answer = await lab.ssh('systemctl is-system-running');
      const registry = (await lab.registry.running()) ? 'running' : 'stopped';
      return `${lab.address} ${answer.stdout.trim() || 'does not answer'}, registry ${registry}`;
    })
    .catch(() => 'incomplete');
  return `${name}  ${kind}  ${state}  (${owner})`;
}

function ssh(lab: Lab, remote: readonly string[]): Promise<number> {
  const target = { ...lab, port: lab.sshPort };
  const words = remote.length > 0 ? ['--', remote.join(' ')] : [];
  return new Promise((resolve, reject) => {
    const child = spawn('ssh', [...sshArguments(target), ...words], { stdio: 'inherit' });
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 255));
  });
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
