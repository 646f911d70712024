import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { renderedArguments } from '../../../shape/engines/rendered-arguments.ts';

describe('the arguments of a release', () => {
  it.each([
    ['apart', ['--max-num-seqs', '2']],
    ['in one word', ['--max-num-seqs=2']],
    ['with underscores', ['--max_num_seqs', '2']],
    ['twice, where the last counts', ['--max-num-seqs', '7', '--port', '1', '--max-num-seqs', '2']],
  ])('are read %s', (_how, words) => {
    expect(renderedArguments(words).number('--max-num-seqs')).toBe(2);
  });

  it.each([
    ['nothing', []],
    ['no value', ['--max-num-seqs']],
    ['a word', ['--max-num-seqs', 'many']],
    ['the flag as a value of its own kind', ['--max-num-seqs-more', '2']],
  ])('have no number where there is %s', (_what, words) => {
    expect(renderedArguments(words).number('--max-num-seqs')).toBeUndefined();
  });

  it('know short names', () => {
    expect(renderedArguments(['-tp', '2']).number('--tensor-parallel-size')).toBe(2);
  });

  it.each([[['-q', 'gptq']], [['-qgptq']], [['-q=gptq']], [['--quantization=gptq']]])(
    'know a short name with its value behind it: %j',
    (words) => {
      expect(renderedArguments([...words, '--port', '1']).value('--quantization')).toBe('gptq');
    },
  );

  it('take nothing for a short name that only begins a longer one', () => {
    expect(renderedArguments(['--quantization-of-kv', 'x', '-Q1']).value('--quantization')).toBeUndefined();
  });

  it('take a negative number for a value', () => {
    expect(renderedArguments(['--max-model-len', '-1']).number('--max-model-len')).toBe(-1);
  });

  it.each([
    [[], undefined],
    [['--enable-expert-offload'], true],
    [['--no-enable-expert-offload'], false],
    [['--enable-expert-offload', '--no-enable-expert-offload'], false],
    [['--no-enable-expert-offload', '--enable-expert-offload', '--port', '1'], true],
    [['--enable-expert-offload', '--no-enable-expert-offload', '--enable-expert-offload'], true],
  ])('%j turn a switch to %s', (words, on) => {
    expect(renderedArguments(words).isOn('--enable-expert-offload')).toBe(on);
  });

  it('give all values of a list', () => {
    const words = ['--served-model-name', 'a', 'b', '--port', '1'];
    expect(renderedArguments(words).values('--served-model-name')).toEqual(['a', 'b']);
    expect(renderedArguments(words).values('--other')).toEqual([]);
  });

  it('lay single keys over an object', () => {
    const words = ['--speculative-config', '{"method":"mtp"}', '--speculative_config.num_tokens', '4'];
    expect(renderedArguments(words).object('--speculative-config')).toEqual({
      method: 'mtp',
      num_tokens: '4',
    });
    expect(renderedArguments(words.slice(2)).object('--speculative-config')).toEqual({ num_tokens: '4' });
  });

  it.each(['{', '', 'mtp', '[1]', 'null'])('have no object in %j', (json) => {
    expect(renderedArguments(['--speculative-config', json]).object('--speculative-config')).toBeUndefined();
  });

  it('are read whatever they are', () => {
    fc.assert(
      fc.property(fc.array(fc.string()), fc.string(), (words, value) => {
        const read = renderedArguments([...words, `--last=${value}`]);
        expect(read.value('--last')).toBe(value);
        expect(read.isOn('--last')).toBe(true);
      }),
    );
  });
});
