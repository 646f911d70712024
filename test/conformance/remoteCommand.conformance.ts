import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { execa } from 'execa';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Outcome, Wanted } from './project.ts';
import { useProjectAndSshd } from './setup.ts';
import { acceptedVariable, makeKey } from './sshd.ts';

const used = useProjectAndSshd();

type Commands = Record<string, Record<string, unknown>>;

/** `connection` of a resource is laid over the one that works. */
function commands(args: Commands): Wanted {
  const resources = Object.entries(args).map(([name, { connection, ...own }]) => {
    const reached = { ...used.sshd.connection, dialErrorLimit: 0, ...(connection as object) };
    return [name, { type: 'remote.Command', args: { ...own, connection: reached } }];
  });
  return { resources: Object.fromEntries(resources) };
}
const file = (name: string) => path.join(used.project.folder, name);
const textOf = (name: string) => (existsSync(file(name)) ? readFileSync(file(name), 'utf8') : '');
const linesShown = (outcome: Outcome, resource: string) =>
  outcome.messages.filter((message) => message.resource === resource).map((message) => message.text);

describe('what a create gives and takes', () => {
  let outcome: Outcome;
  beforeAll(async () => {
    outcome = await used.project.up(
      commands({
        both: { create: 'echo said; echo warned >&2' },
        blank: { create: "printf 'two\\n\\n'" },
        given: { create: 'cat', stdin: 'line 1\nline 2' },
        variable: { create: `echo "$${acceptedVariable}"`, environment: { [acceptedVariable]: 'a "b"\n$c' } },
        mute: { create: 'echo said; echo warned >&2', logging: 'none' },
        half: { create: 'echo said; echo warned >&2', logging: 'stderr' },
        idle: { delete: 'true' },
      }),
    );
  });

  it('succeeds', () => expect(outcome.text).toContain('8 created'));
  it('keeps standard output and error apart', () => {
    expect(used.project.outputsOf('both')).toMatchObject({ stdout: 'said', stderr: 'warned' });
  });
  it('takes one newline from the end of the output', () => {
    expect(used.project.outputsOf('blank')).toMatchObject({ stdout: 'two\n' });
  });
  it('passes stdin to the command', () => {
    expect(used.project.outputsOf('given')).toMatchObject({ stdout: 'line 1\nline 2' });
  });
  it('passes a variable that the host accepts, byte for byte', () => {
    expect(used.project.outputsOf('variable')).toMatchObject({ stdout: 'a "b"\n$c' });
  });
  it('shows every line of both streams in the row of the resource, passingly', () => {
    expect(linesShown(outcome, 'both').sort()).toEqual(['said', 'warned']);
    expect(
      outcome.messages.filter(({ resource }) => resource === 'both').every(({ ephemeral }) => ephemeral),
    ).toBe(true);
  });
  it('shows nothing with logging none, and only what logging names', () => {
    expect(linesShown(outcome, 'mute')).toEqual([]);
    expect(linesShown(outcome, 'half')).toEqual(['warned']);
    expect(used.project.outputsOf('mute')).toMatchObject({ stdout: 'said', stderr: 'warned' });
  });
  it('runs nothing without a create', () => {
    expect(used.project.outputsOf('idle')).toMatchObject({ stdout: '', stderr: '' });
  });
  it('keeps the connection as a secret', () => {
    expect(JSON.stringify(used.project.outputsOf('both')?.connection)).toContain('ciphertext');
  });
});

describe('what a change causes', () => {
  const early = (): Commands => ({
    stdin: { create: `cat >> ${file('stdin')}`, stdin: 'one\n' },
    create: { create: `echo one >> ${file('create')}` },
    update: {
      create: 'echo first',
      update: `echo "$PULUMI_COMMAND_STDOUT" >> ${file('update')}`,
      stdin: 'one',
    },
    blind: {
      create: 'echo first',
      update: `echo "<$PULUMI_COMMAND_STDOUT>" >> ${file('blind')}`,
      stdin: 'one',
      addPreviousOutputInEnv: false,
    },
    created: { create: 'echo one', update: `echo ran >> ${file('created')}` },
    deletion: { create: `echo ran >> ${file('deletion')}`, delete: 'true' },
    trigger: {
      create: `echo create >> ${file('trigger')}`,
      update: `echo update >> ${file('trigger')}`,
      delete: `echo delete >> ${file('trigger')}`,
      triggers: ['one'],
    },
    connection: { create: `echo ran >> ${file('connection')}`, connection: { perDialTimeout: 10 } },
  });
  const late = (): Commands => {
    const wanted = early();
    Object.assign(wanted.stdin as object, { stdin: 'two\n' });
    Object.assign(wanted.create as object, { create: `echo two >> ${file('create')}` });
    Object.assign(wanted.update as object, { stdin: 'two' });
    Object.assign(wanted.blind as object, { stdin: 'two' });
    Object.assign(wanted.created as object, { create: 'echo two' });
    Object.assign(wanted.deletion as object, { delete: 'exit 0' });
    Object.assign(wanted.trigger as object, { triggers: ['two'] });
    Object.assign(wanted.connection as object, { connection: { perDialTimeout: 11 } });
    return wanted;
  };
  let same: Outcome;
  let previewed: Outcome;
  let outcome: Outcome;
  const logs = ['stdin', 'create', 'update', 'blind', 'created', 'deletion', 'trigger', 'connection'];
  let untouched: string[];
  beforeAll(async () => {
    await used.project.up(commands(early()));
    same = await used.project.up(commands(early()));
    untouched = logs.map(textOf);
    previewed = await used.project.preview(commands(late()));
    untouched.push(...logs.map(textOf));
    outcome = await used.project.up(commands(late()));
  });

  it('nothing when nothing changed', () => {
    expect(same.text).toContain('9 unchanged');
    expect(same.failed).toBe(false);
  });
  it('a preview runs nothing on the host', () => {
    expect(previewed.operations).toMatchObject({
      stdin: 'update',
      trigger: expect.stringContaining('replace'),
    });
    expect(untouched.slice(logs.length)).toEqual(untouched.slice(0, logs.length));
  });
  it('a changed stdin runs the create again where there is no update', () => {
    expect(outcome.operations.stdin).toBe('update');
    expect(outcome.differences.stdin).toEqual(['stdin']);
    expect(textOf('stdin')).toBe('one\ntwo\n');
  });
  it('a changed create alone runs the new create', () => {
    expect(outcome.operations.create).toBe('update');
    expect(textOf('create')).toBe('one\ntwo\n');
  });
  it('a changed create alone runs the update where there is one', () => {
    expect(textOf('created')).toBe('ran\n');
  });
  it('a changed delete alone runs the create, too', () => {
    expect(textOf('deletion')).toBe('ran\nran\n');
  });
  it('an update knows the previous output, unless told not to', () => {
    expect(textOf('update')).toBe('first\n');
    expect(textOf('blind')).toBe('<>\n');
  });
  it('a changed trigger replaces: the new create runs, then the old delete, never the update', () => {
    expect(outcome.operations.trigger).toMatch(/replace/);
    expect(textOf('trigger')).toBe('create\ncreate\ndelete\n');
  });
  it('a changed connection runs the command again', () => {
    expect(outcome.operations.connection).toBe('update');
    expect(textOf('connection')).toBe('ran\nran\n');
  });
});

describe('failures', () => {
  const good = { create: 'cat', stdin: 'good' };
  const bad = { create: 'cat; exit 1', stdin: 'bad' };
  let outcome: Outcome;
  beforeAll(async () => {
    await used.project.up(commands({ kept: good }));
    const broken = { create: 'echo said; echo "why" >&2; exit 3' };
    outcome = await used.project.up(commands({ kept: bad, broken }), '--continue-on-error');
  });

  it('a failed create leaves nothing in the state and tells the command with its whole output', () => {
    expect(outcome.failed).toBe(true);
    expect(outcome.text).toContain(
      'Process exited with status 3: running "echo said; echo \\"why\\" >&2; exit 3":',
    );
    expect(outcome.text).toMatch(/^ +said$/m);
    expect(outcome.text).toMatch(/^ +why$/m);
    expect(used.project.outputsOf('broken')).toBeUndefined();
  });

  it('a failed update keeps the old inputs and outputs, so that the next run tries again', async () => {
    expect(used.project.outputsOf('kept')).toMatchObject({ ...good, stdout: 'good' });
    const next = await used.project.preview(commands({ kept: bad }));
    expect(next.operations.kept).toBe('update');
    const back = await used.project.preview(commands({ kept: good }));
    expect(back.operations.kept).toBe('same');
  });

  it('refuses to talk to a host with another key, and to run what it cannot be told whole', async () => {
    await makeKey(file('other'));
    const connection = { hostKey: readFileSync(file('other.pub'), 'utf8') };
    const outcome = await used.project.up(
      commands({
        stranger: { create: `echo ran >> ${file('stranger')}`, connection },
        unheard: { create: `echo ran >> ${file('unheard')}`, environment: { NOT_ACCEPTED: 'x' } },
        keyless: {
          create: 'true',
          connection: { privateKey: readFileSync(file('other'), 'utf8') },
        },
        nowhere: { create: 'true', connection: { port: 1, dialErrorLimit: 1 } },
      }),
      '--continue-on-error',
    );
    const said = (resource: string) =>
      outcome.messages
        .filter((message) => message.resource === resource && !message.ephemeral)
        .map(({ text }) => text);
    expect(said('stranger').join()).toMatch(/host key/i);
    expect(textOf('stranger')).toBe('');
    expect(said('unheard').join()).toContain('could not set environment variable "NOT_ACCEPTED"');
    expect(textOf('unheard')).toBe('');
    expect(said('keyless').join()).toMatch(/unable to authenticate|Permission denied/);
    expect(said('nowhere').join()).toContain('after 1 failed attempts');
    expect(used.project.outputsOf('stranger')).toBeUndefined();
  });
});

describe('ways to log in', () => {
  it('uses the keys of an agent, and reaches a host through another', async () => {
    const agent = spawn('ssh-agent', ['-D', '-a', file('agent')]);
    try {
      await expect.poll(() => existsSync(file('agent'))).toBe(true);
      await execa('ssh-add', ['-q', used.sshd.keyFile], { env: { SSH_AUTH_SOCK: file('agent') } });
      const { connection } = used.sshd;
      const outcome = await used.project.up(
        commands({
          agent: { create: 'echo in', connection: { privateKey: undefined, agentSocketPath: file('agent') } },
          jump: { create: 'echo through', connection: { proxy: { ...connection, dialErrorLimit: 0 } } },
        }),
      );
      expect(outcome.text).toContain('2 created');
      expect(used.project.outputsOf('agent')).toMatchObject({ stdout: 'in' });
      expect(used.project.outputsOf('jump')).toMatchObject({ stdout: 'through' });
    } finally {
      agent.kill();
    }
  });

  it('fails on an agent that does not answer, although a key is given', async () => {
    writeFileSync(file('dead'), '');
    const outcome = await used.project.up(
      commands({ dead: { create: 'true', connection: { agentSocketPath: file('dead') } } }),
    );
    expect(outcome.failed).toBe(true);
    expect(outcome.text).toContain(`dial unix ${file('dead')}`);
  });
});

describe('the end', () => {
  it('a refresh asks nobody, not even whether the host is there', async () => {
    await used.project.up(
      commands({ last: { create: 'true', delete: `cat > ${file('last')}`, stdin: 'to the end' } }),
    );
    writeFileSync(file('last'), 'untouched');
    const outcome = await used.project.refresh();
    expect(outcome.failed).toBe(false);
    expect(outcome.text).toContain('2 unchanged');
    expect(textOf('last')).toBe('untouched');
  });

  it('a delete gets the stdin of the last create or update', async () => {
    const outcome = await used.project.destroy();
    expect(outcome.failed).toBe(false);
    expect(textOf('last')).toBe('to the end');
  });

  it('a failed delete keeps the resource', async () => {
    await used.project.up(commands({ stuck: { create: 'true', delete: `test -e ${file('free')}` } }));
    expect((await used.project.destroy()).failed).toBe(true);
    expect(used.project.outputsOf('stuck')).toBeDefined();
    writeFileSync(file('free'), '');
    expect((await used.project.destroy()).failed).toBe(false);
    expect(used.project.outputsOf('stuck')).toBeUndefined();
  });
});
