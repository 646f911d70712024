# Proves, as the login, that the host program can be called and that images which are pulled through the docker
# shim land in the store of the engine's unit.
# Expects: host, login, store, slot_program

fail() {
  printf '%s: %s\n' "$host" "$1" >&2
  exit 1
}

main() {
  if [ "$(id -u)" = 0 ]; then version=$("$slot_program" --version); else version=$(sudo -n "$slot_program" --version); fi ||
    fail "$login may not run $slot_program through sudo -n"
  shim=$(command -v docker) || fail "docker is not on the PATH of $login ($PATH)"
  # HTTP 1.0, so that the answer comes in one piece.
  answer=$(printf 'GET /v1.40/info HTTP/1.0\r\nHost: podman\r\n\r\n' | docker system dial-stdio) ||
    fail "$shim system dial-stdio does not answer for $login; see systemctl status podman.socket"
  seen=$(printf '%s' "$answer" | grep -o '"DockerRootDir":"[^"]*"' | cut -d '"' -f 4)
  [ "$seen" = "$store" ] || fail "$shim sees the image store ${seen:-(none)}, the engine's unit reads $store"
  printf 'agent=%s\nstore=%s\n' "$version" "$seen"
}

main </dev/null
