import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Resource, Status, Values } from '../provider.ts';
import { follow, type Logging, outputsOf } from './run.ts';

interface Inputs {
  create?: string;
  update?: string;
  delete?: string;
  command?: string;
  stdin?: string;
  dir?: string;
  interpreter?: string[];
  logging?: Logging;
  environment?: Record<string, string>;
}

export const localCommand: Resource = {
  replacedBy: ['triggers'],
  determines: ['stdout', 'stderr'],
  async create(inputs, status) {
    const outputs = await run(inputs, (inputs as Values & Inputs).create, status);
    return { id: randomBytes(8).toString('hex'), outputs: { ...inputs, ...outputs } };
  },
  async update(inputs, _state, status) {
    const { create, update } = inputs as Values & Inputs;
    return { ...inputs, ...(await run(inputs, update ?? create, status)) };
  },
  async delete(state, status) {
    await run(state, (state as Values & Inputs).delete, status);
  },
};

export async function localRun(inputs: Values): Promise<Values> {
  return { ...inputs, ...(await run(inputs, (inputs as Values & Inputs).command, () => {})) };
}

async function run(values: Values, command: string | undefined, status: Status): Promise<Values> {
  if (command === undefined) return { stdout: '', stderr: '' };
  const { interpreter = ['/bin/sh', '-c'], dir, environment, stdin, logging } = values as Values & Inputs;
  const [program, ...leading] = interpreter;
  const child = spawn(String(program), [...leading, command], {
    ...(dir !== undefined && { cwd: dir }),
    env: { ...process.env, ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const finished = await follow(child, stdin, logging, status);
  return outputsOf(
    finished,
    command,
    finished.signal ? `signal: ${finished.signal}` : `exit status ${finished.code}`,
  );
}
