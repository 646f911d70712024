import { describe, expect, it } from 'vitest';
import { ByteSize, Duration } from '../../../shape/quantities.ts';

describe('ByteSize', () => {
  it.each([
    ['512 B', 512],
    ['64MiB', 67_108_864],
    ['230 GiB', 246_960_619_520],
    ['1.5 GiB', 1_610_612_736],
    ['0 B', 0],
    ['6.234 MiB', 6_536_823],
    ['0.05 GiB', 53_687_091],
    ['1.50 KiB', 1536],
  ])('reads %s', (text, bytes) => expect(ByteSize.parse(text)?.bytes).toBe(bytes));

  it.each([
    '8192',
    '-1',
    '64 mib',
    '64 MB',
    '64 M',
    '1e3 B',
    '0x10 B',
    '1_000 B',
    '1.5 B',
    ' 1 B',
    '1 B ',
    '1  B',
    '1 GiB 2',
    '',
    'GiB',
    '.5 GiB',
    '1. GiB',
    '9999999 TiB',
    '1 constructor',
  ])('refuses %j', (text) => expect(ByteSize.parse(text)).toBeUndefined());
});

describe('Duration', () => {
  it.each([
    ['20 min', 1200],
    ['1.5 s', 1.5],
    ['250ms', 0.25],
    ['2 h', 7200],
    ['0 s', 0],
  ])('reads %s', (text, seconds) => expect(Duration.parse(text)?.seconds).toBe(seconds));

  it.each([
    '20',
    '-1 s',
    '20 m',
    '20 minutes',
    '1 h 30 min',
    '1:30',
    '1e3 s',
    'infinity',
    '',
    's',
    '1 d',
    '169 h',
    '999999999999999 h',
  ])('refuses %j', (text) => expect(Duration.parse(text)).toBeUndefined());
});
