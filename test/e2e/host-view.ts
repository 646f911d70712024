import { z } from 'zod';
import type { LabHost } from '../../lab/host.ts';
import { type Inspection, inspectionSchema } from '../../shape/inspection.ts';

const modelsSchema = z.object({
  data: z.array(z.object({ id: z.string(), max_model_len: z.number().optional() })),
});

/** A lab host as somebody sees it who does not believe the product: by the endpoint and by the host's own tools. */
export class HostView {
  readonly #lab: LabHost;

  constructor(lab: LabHost) {
    this.#lab = lab;
  }

  /** Standard output of a command run as root; throws when it fails. */
  async root(command: string): Promise<string> {
    const { exitCode, stdout, stderr } = await this.#lab.ssh(command, { root: true });
    if (exitCode !== 0) throw new Error(`${command}: exit ${exitCode}: ${stderr}`);
    return stdout.trim();
  }

  async status(): Promise<Inspection> {
    return inspectionSchema.parse(JSON.parse(await this.root('slot status --json')));
  }

  /** Served names as the endpoint lists them; none when nothing answers. */
  async servedNames(): Promise<string[]> {
    try {
      const response = await fetch(`${this.#lab.engineUrl}/v1/models`, { signal: AbortSignal.timeout(2000) });
      return modelsSchema.parse(await response.json()).data.map((model) => model.id);
    } catch {
      return [];
    }
  }

  async answerOf(model: string): Promise<string> {
    const response = await fetch(`${this.#lab.engineUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, max_tokens: 200, messages: [{ role: 'user', content: 'What is 2+2?' }] }),
      signal: AbortSignal.timeout(10_000),
    });
    const schema = z.object({
      choices: z.array(z.object({ message: z.object({ content: z.string().nullish() }) })),
    });
    return schema.parse(await response.json()).choices[0]?.message.content ?? '';
  }

  /** systemd's id of the engine's start: another one after each start. */
  invocation(): Promise<string> {
    return this.root('systemctl show frank-archon.service --property=InvocationID --value');
  }

  async containers(): Promise<string[]> {
    const names = await this.root("podman ps --all --format '{{.Names}}'");
    return names.split('\n').filter((name) => name !== '');
  }

  /** Every file with its size, time and inode, but for the engine's own log and the traces that a login leaves. */
  fileTree(): Promise<string> {
    const traces =
      '/var/log/(slot|journal|wtmp|btmp|lastlog)|/var/lib/lastlog|/run/systemd/system/session-.*';
    return this.root(
      `find /etc /usr /opt /root /srv /var /home /run/systemd/system -xdev -regextype posix-extended \\( -regex '(${traces}).*' -prune \\) -o -printf '%p %s %T@ %i\\n' | sort`,
    );
  }

  /** Waits until the given holds; throws with the last state after the limit. */
  async until(what: string, limitSeconds: number, holds: () => Promise<boolean>): Promise<void> {
    const end = Date.now() + limitSeconds * 1000;
    while (!(await holds().catch(() => false))) {
      if (Date.now() > end) {
        const { stdout, stderr } = await this.#lab.ssh('slot status', { root: true });
        throw new Error(`not within ${limitSeconds} s: ${what}\n${stdout}${stderr}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
