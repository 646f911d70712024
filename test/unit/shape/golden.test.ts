import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { draftedShape } from '../../../components/planned-shape.ts';
import { experimentsFolder } from '../../../components/stack-files.ts';
import { stacksIn } from '../../../components/stack-list.ts';
import { renderEnvironment } from '../../../shape/render.ts';

const project = join(import.meta.dirname, '..', '..', '..');

const update = process.env.UPDATE_GOLDEN === '1';

const hasSystemdAnalyze = spawnSync('systemd-analyze', ['--version']).status === 0;

const stacks = [...stacksIn(project, 'shape'), ...stacksIn(join(project, experimentsFolder), 'shape')];

/** The project's own files, with what the operator has supplied in them: a difference here is one of the host. */
describe.each(stacks)('%s', (stack) => {
  const { release } = draftedShape(project, stack);
  const rendered = {
    service: release.unit,
    target: release.target,
    environment: renderEnvironment(release.environment, release.secrets),
  };

  it.each(Object.entries(rendered))(
    'renders the %s that was reviewed (npm run golden writes it anew)',
    (kind, text) => {
      const golden = new URL(`../../golden/${stack}.${kind}`, import.meta.url);
      if (update) writeFileSync(golden, text);
      expect(existsSync(golden), `${stack}.${kind} is not there: npm run golden`).toBe(true);
      expect(text).toBe(readFileSync(golden, 'utf8'));
    },
  );

  it('is understood by systemd without a message', ({ skip }) => {
    skip(!hasSystemdAnalyze, 'systemd-analyze is not on this machine');
    expect(complaints(release.service, release.unit, release.target)).toEqual([]);
  });

  it.for([
    ['an unknown directive', 'Restart=always', 'LimitMemLock=infinity'],
    ['a value without meaning', 'TimeoutStartSec=infinity', 'TimeoutStartSec=forever'],
    ['a single percent sign', '--detach', '--env=A=50%20'],
  ])('would not pass with %s', ([_fault, right, wrong], { skip }) => {
    skip(!hasSystemdAnalyze, 'systemd-analyze is not on this machine');
    expect(
      complaints(release.service, release.unit.replace(right ?? '', wrong ?? ''), release.target),
    ).not.toEqual([]);
  });
});

/** What systemd complains about, but for podman, which only the host has. Its exit status would pass most of it. */
function complaints(service: string, unit: string, target: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'slot-verify-'));
  try {
    const files = [`${service}.target`, `${service}.service`];
    writeFileSync(join(folder, `${service}.target`), target);
    writeFileSync(join(folder, `${service}.service`), unit);
    const { stdout, stderr } = spawnSync('systemd-analyze', ['verify', ...files], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:` },
    });
    return `${stdout}${stderr}`
      .split('\n')
      .filter((line) => line !== '' && !line.includes('Command /usr/bin/podman is not executable'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
