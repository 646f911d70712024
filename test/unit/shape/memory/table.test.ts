import { describe, expect, it } from 'vitest';
import { comparisonText, countText, sizeText } from '../../../../shape/memory/amounts.ts';
import { memoryPlanOf } from '../../../../shape/memory/plan.ts';
import { memoryTable } from '../../../../shape/memory/table.ts';
import { recordedModel } from '../../../fixtures/models.ts';
import { planned } from '../rules/rule-cases.ts';

const glm = memoryTable(memoryPlanOf(planned('glm-w4a16', { model: recordedModel('glm-5.3-flash') })));
const rowOf = (label: string): string => glm.find((line) => line.startsWith(label)) ?? '';

describe('the table of a memory plan', () => {
  it('has a figure a line, for rank and host, with its source and how it comes about', () => {
    expect(rowOf('pinned experts')).toMatch(
      /^pinned experts +73\.64 GiB +147\.28 GiB +derived +12,096 × 6\.23 MiB; recorded 73\.64 GiB$/,
    );
  });

  it('is aligned: every amount of a column ends where its title ends', () => {
    const ends = ['per rank', 'host'].map((title) => (glm[0] ?? '').indexOf(title) + title.length);
    for (const line of glm.slice(1)) {
      for (const end of ends) expect(line.slice(end, end + 2)).toMatch(/^ {0,2}$/);
    }
  });

  it('shows what the record has beyond the product', () => {
    expect(rowOf('KV reserve')).toMatch(
      /1\.66 GiB .*recorded 1\.76 GiB, 102\.24 MiB more; recorded 1\.72 GiB, 60\.00 MiB more$/,
    );
  });

  it('says what is not known, with no source', () => {
    expect(rowOf('mamba pages')).toMatch(/^mamba pages +not known {3,}not on record by itself/);
  });

  it('says that there is no limit', () => {
    expect(rowOf('locked memory limit')).toMatch(/no limit +configured/);
  });

  it('leaves no blanks at the ends of lines', () => {
    for (const line of glm) expect(line).not.toMatch(/\s$/);
  });

  it('is empty without figures', () => {
    expect(memoryTable({ figures: [], amount: () => undefined })).toEqual([]);
  });
});

describe('an amount', () => {
  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1.00 KiB'],
    [6_536_823, '6.23 MiB'],
    [1.74 * 2 ** 30, '1.74 GiB'],
    [-(2 ** 31), '-2.00 GiB'],
    [1.5 * 2 ** 40, '1.50 TiB'],
    [58_656 * (2 ** 31 - 1), '114.56 TiB'],
    [13_600 * Number.MAX_SAFE_INTEGER, '106.25 EiB'],
  ])('of %d bytes reads %s', (bytes, text) => expect(sizeText(bytes)).toBe(text));

  it.each([
    [0, '0'],
    [999, '999'],
    [12_096, '12,096'],
    [-1_234_567, '-1,234,567'],
  ])('of %d reads %s', (count, text) => expect(countText(count)).toBe(text));

  it('is compared to the byte where it looks alike', () => {
    expect(comparisonText(2 ** 30 + 1, 2 ** 30)).toBe(
      '1.00 GiB > 1.00 GiB, 1,073,741,825 B > 1,073,741,824 B',
    );
  });
});
