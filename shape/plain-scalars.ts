/**
 * YAML 1.1, YAML 1.2 and Pulumi's own reader type some unquoted words differently: 0600 is 600, 384 or text;
 * `no` is text or false; 0000:03:00.0 is text or a number to base 60. What they disagree on must be quoted.
 */
const disputed: readonly (readonly [RegExp, string])[] = [
  [/^(?:y|n|yes|no|on|off)$/i, 'is true or false for some YAML readers and text for others'],
  [/^(?:True|TRUE|False|FALSE|Null|NULL)$/, 'is text for some YAML readers'],
  [/^[-+]?0\d[\d_]*$/, 'is octal for some YAML readers and decimal for others'],
  [/^[-+]?0[xXoObB][0-9a-fA-F_]+$/, 'is a number for some YAML readers and text for others'],
  [/^[-+]?\d[\d_]*(?:\.[\d_]*)?$/, 'is a number for some YAML readers and text for others'],
  [/^[-+]?\.[\d_]*$/, 'is a number for some YAML readers and text for others'],
  [
    /^[-+]?(?:\d[\d_]*(?:\.[\d_]*)?|\.[\d_]+)[eE][-+]?\d+$/,
    'is a number with an exponent for some YAML readers',
  ],
  [/^[-+]?\d[\d_]*(?::[0-5]?\d)+(?:\.[\d_]*)?$/, 'is a number to base 60 for some YAML readers'],
  [/^[-+]?\.(?:inf|nan)$/i, 'is not a finite number'],
  [/^\d{4}-\d{1,2}-\d{1,2}(?:$|[Tt ])/, 'is a date for some YAML readers and text for others'],
  [/^(?:=|<<)$/, 'has a meaning of its own in YAML 1.1'],
];

/** Numbers that all readers agree on: decimal and without leading zeros. */
const agreedNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/;

/** Why YAML readers disagree on this unquoted word; undefined when they do not. */
export function disputeOver(source: string): string | undefined {
  if (agreedNumber.test(source)) {
    const digits = source.replaceAll(/[-.]/g, '').replace(/^0+/, '');
    if (digits.length > 15) return 'has more digits than a number keeps';
    return String(Number(source)).includes('e') ? 'would be written with an exponent' : undefined;
  }
  const found = disputed.find(([form]) => form.test(source))?.[1];
  if (found !== undefined || !/^[-+.\d].*_/.test(source)) return found;
  // Pulumi's reader takes all underscores out of what then is a number, wherever they stand: 9e_4, +_0.
  const bare = source.replaceAll('_', '');
  const isNumber = agreedNumber.test(bare) || disputed.some(([form]) => form.test(bare));
  return isNumber ? 'is a number for some YAML readers and text for others' : undefined;
}
