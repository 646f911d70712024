export const dockerShimPath = '/usr/local/bin/docker';

/** By this line a shim of ours is told from a docker that somebody else installed. */
export const ownershipMark = '# Installed by slot';

/**
 * Pulumi's docker provider runs `docker system dial-stdio` over ssh. For an ordinary login podman would answer
 * with another image store than the one that the engine's unit, root's, starts from.
 */
export const dockerShim = `#!/bin/sh
${ownershipMark}: root's podman under docker's name, for every login that may use sudo.
unset CONTAINER_HOST CONTAINER_CONNECTION
if [ "$(id -u)" = 0 ]; then exec podman "$@"; fi
exec sudo -n podman "$@"
`;
