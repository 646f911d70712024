import { execa } from 'execa';

/** Names another Debian mirror than the one that this machine's apt uses, e.g. on a machine that is not Debian. */
const MIRROR_VARIABLE = 'SLOT_LAB_DEBIAN_MIRROR';

/** The base URL of the Debian archive, as this machine's own apt is configured. */
export async function debianMirror(): Promise<string> {
  const named = process.env[MIRROR_VARIABLE];
  if (named) return named;
  const listed = await execa(
    'apt-get',
    ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages', 'Origin: Debian', 'Label: Debian'],
    { reject: false },
  );
  const mirror = listed.stdout?.split('\n')[0]?.trim();
  if (!mirror) {
    throw new Error(
      `apt on this machine names no Debian archive; set ${MIRROR_VARIABLE} to the base URL of one (the folder that has dists/ and pool/)`,
    );
  }
  return mirror;
}
