import { isMap, parseDocument } from 'yaml';
import type { LabHost } from './host.ts';

/** A value that the lab lays over a stack file: where, and what; `undefined` takes the key away. */
export type Change = readonly [path: readonly string[], value: unknown];

/** Images of the lab's registry, by digest. */
export interface LabImages {
  readonly repository: string;
  readonly vllm: string;
  readonly r9v: string;
}

/** Stacks whose files the lab copies. */
export const hostStack = 'dankserver';
export const shapeStacks = ['glm-w4a16', 'qwen-fp8-mtp4', 'r9v-q8_0'] as const;
export type ShapeStack = (typeof shapeStacks)[number];

/** Seconds that the lab's engines load by default. */
export const loadSeconds = 2;

const host = (...keys: string[]) => ['config', 'slot:host', ...keys];
const shape = (...keys: string[]) => ['config', 'slot:shape', ...keys];

/** What the stack files are told of a lab host. */
export type LabPlace = Pick<LabHost, 'kind' | 'address' | 'sshPort' | 'user' | 'hostKey' | 'privateKeyPath'>;

/** All that differs between the operator's host and a lab host. */
export function hostChanges(lab: LabPlace): Change[] {
  return [
    [host('address'), lab.address],
    [host('sshPort'), lab.sshPort],
    [host('user'), lab.user],
    [host('hostKey'), lab.hostKey],
    [host('privateKeyPath'), lab.privateKeyPath],
    [host('publicName'), 'wire'],
    [host('selinux'), 'disabled'],
    // There is no GPU, and not 230 GiB.
    [host('gpus'), []],
    [host('deviceFiles'), []],
    [host('memoryGate'), undefined],
  ];
}

/** All that differs between a shape on the operator's host and on a lab host. */
export function shapeChanges(
  stack: ShapeStack,
  lab: LabPlace,
  images: LabImages,
  hostsFolder: string,
): Change[] {
  const isR9v = stack === 'r9v-q8_0';
  return [
    [['config', 'slot:hostsFolder'], hostsFolder],
    [shape('engine', 'image'), { repository: images.repository, digest: isR9v ? images.r9v : images.vllm }],
    // Processes of an nspawn lab cannot lock more than this kernel lets its creator lock.
    ...(lab.kind === 'nspawn' ? [[shape('limits', 'memlock'), '8 MiB'] as const] : []),
    ...exceptionsOf(stack, lab),
    [shape('environment', 'LAB_ENGINE_LOAD_SECONDS'), String(loadSeconds)],
    [shape('deadlines', 'boot'), lab.kind === 'vm' ? '4 min' : '1 min'],
    [shape('deadlines', 'check'), lab.kind === 'vm' ? '30 s' : '5 s'],
    [shape('deadlines', 'settle'), '1 s'],
    ...(isR9v ? operatorSuppliedOfR9v : []),
  ];
}

/** Rules that speak of memory which the engine's double does not take. */
function exceptionsOf(stack: ShapeStack, lab: LabPlace): readonly Change[] {
  const broken = [
    ...(stack !== 'r9v-q8_0' && lab.kind === 'nspawn' ? ['memlock-for-offload'] : []),
    ...(stack === 'glm-w4a16' && lab.kind === 'nspawn' ? ['memlock-holds-pinned'] : []),
    ...(stack === 'glm-w4a16' ? ['pinned-fits-host'] : []),
  ];
  return broken.map((rule): Change => [shape('exceptions', rule), "lab: the engine's double pins nothing"]);
}

/** The record does not have them: the lab supplies what its engine takes. */
const operatorSuppliedOfR9v: readonly Change[] = [
  [shape('payload'), { folder: 'Qwen3.8-Flash-Next-Q8_0', entry: 'model-00001-of-00003.gguf' }],
  [
    shape('engine', 'arguments'),
    [
      '--model',
      '{payload}',
      '--host',
      '0.0.0.0',
      '--port',
      '{port}',
      '--ctx-size',
      '{maxModelLength}',
      '--alias',
      '{servedNames}',
      '--state-dir',
      '{state:q8xl}',
    ],
  ],
];

/** The text of a stack file with the changes laid over it; its comments stay. */
export function laidOver(text: string, changes: readonly Change[]): string {
  const document = parseDocument(text);
  for (const [path, value] of changes) {
    if (value === undefined) {
      document.deleteIn(path);
      continue;
    }
    for (let depth = 1; depth < path.length; depth += 1) {
      const parent = path.slice(0, depth);
      if (!isMap(document.getIn(parent))) document.setIn(parent, document.createNode({}));
    }
    document.setIn(path, document.createNode(value));
  }
  return document.toString();
}
