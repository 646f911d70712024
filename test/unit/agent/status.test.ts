import { expect, it } from 'vitest';
import { statusText } from '../../../agent/status.ts';
import { inspection, outcome, release, transaction } from '../components/samples.ts';

it('gives the reason of the last outcome whole, also where it has several lines', () => {
  const message = 'a is not as it should be:\n- model.safetensors has sha256 f…\nFetch these files again';
  const refused = { ...outcome, kind: 'refused' as const, stage: 'preflight: payload hashes', message };
  const last = transaction(release(), { running: false, outcome: refused });
  const text = statusText(inspection({ transaction: last }));
  expect(text).toContain('refused at preflight: payload hashes');
  for (const line of message.split('\n')) expect(text).toContain(line);
});
