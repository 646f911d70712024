import type { RenderedArguments } from '../../shape/engines/rendered-arguments.ts';
import type { Findings } from './findings.ts';
import { insteadOfFile, type PayloadFolder } from './folder.ts';
import { PayloadFault } from './payload-fault.ts';
import { impostorIn, type JsonObject, jsonOf } from './read-file.ts';
import { shown } from './wording.ts';

/** Each alone, or all of a line together, makes a tokenizer. */
const tokenizers: readonly (readonly string[])[] = [
  ['tokenizer.json'],
  ['tokenizer.model'],
  ['tekken.json'],
  ['tiktoken.model'],
  ['vocab.json', 'merges.txt'],
  ['vocab.txt'],
  ['spiece.model'],
  ['sentencepiece.bpe.model'],
];

const templates = ['chat_template.jinja', 'chat_template.json'];

/** Read if they are there; a damaged one ends the engine's start. */
const settingsFiles = [
  'generation_config.json',
  'preprocessor_config.json',
  'processor_config.json',
  'video_preprocessor_config.json',
  'special_tokens_map.json',
  'added_tokens.json',
];

/** Models to which vLLM gives a template of its own: vllm/transformers_utils/chat_templates/registry.py. */
const modelsWithTemplate =
  /^(?:blip-2|chameleon|clip|colpali|deepseek_ocr2?|unlimited-ocr|deepseek_vl_v2|minicpmv|minicpmv4_6|paligemma|rwkv7|siglip2?)$/;

/** What a folder must hold beside its weights to be served by vLLM. */
export async function checkModelFiles(
  folder: PayloadFolder,
  config: JsonObject,
  words: RenderedArguments | undefined,
  findings: Findings,
): Promise<void> {
  const { entries } = folder;
  if (words?.value('--tokenizer') === undefined && words?.isOn('--skip-tokenizer-init') !== true) {
    const found = tokenizers.find((names) => names.every((name) => entries.has(name)));
    const other = [...entries.keys()].some(
      (name) => /\.tiktoken$/.test(name) || /^tokenizer\.model\./.test(name),
    );
    if (found === undefined && !other)
      findings.add(
        'refuse',
        'it has no tokenizer: neither tokenizer.json nor tokenizer.model nor one of another kind',
      );
    for (const name of found ?? []) await findings.attempt(() => checkText(folder, name));
  }
  const settings = entries.has('tokenizer_config.json')
    ? await findings.attempt(() => jsonOf(folder, 'tokenizer_config.json', folder.extent.configBytes))
    : {};
  for (const name of settingsFiles) await findings.attempt(() => checkText(folder, name));
  const file = templates.find((name) => entries.has(name));
  if (file !== undefined) await findings.attempt(() => checkText(folder, file));
  const ofMode = words?.value('--tokenizer-mode') ?? 'auto';
  const needsNone =
    words?.value('--chat-template') !== undefined ||
    !['auto', 'hf', 'slow', 'fast'].includes(ofMode) ||
    entries.has('tekken.json') ||
    modelsWithTemplate.test(String(config.model_type));
  if (file === undefined && settings !== undefined && !hasTemplate(settings.chat_template) && !needsNone) {
    findings.add(
      'refuse',
      'it has no chat template: neither chat_template.jinja nor chat_template in tokenizer_config.json; without one the engine answers no chat. Add the file, or name one in slot:shape.engine.chatTemplate',
    );
  }
}

function hasTemplate(value: unknown): boolean {
  return (typeof value === 'string' && value.trim() !== '') || (Array.isArray(value) && value.length > 0);
}

/** A file whose content is its engine's alone: it is one, and is what its name says as far as its beginning shows. */
async function checkText(folder: PayloadFolder, name: string): Promise<void> {
  const { kind = 'absent' } = folder.entries.get(name) ?? {};
  // Links are told together, with what to do.
  if (kind === 'absent' || kind === 'unreachable' || kind === 'loop') return;
  if (kind !== 'file') throw new PayloadFault('refuse', `${shown(name)} ${insteadOfFile(kind)}`);
  const { bytes, fileBytes } = await folder.part(name, 0, 4096);
  if (name.endsWith('.json') && fileBytes <= 4096) await jsonOf(folder, name, 4096);
  const impostor = impostorIn(bytes, name.endsWith('.json') ? 'JSON' : 'text');
  if (impostor !== undefined) throw new PayloadFault('refuse', `${shown(name)} is ${impostor}`);
  if (name.endsWith('.json') && !bytes.toString('utf8').trimStart().startsWith('{'))
    throw new PayloadFault('refuse', `${shown(name)} is no JSON object`);
}
