# Installs the host program as root from the files that were copied to the staging folder ($1).
# Expects: node, node_sha256, agent, agent_sha256, slot_program, host, setup (JSON)

kept_versions=3
folder=${slot_program%/*}

fail() {
  printf '%s: %s\n' "$host" "$1" >&2
  exit 1
}

has_hash() {
  [ -f "$1" ] && printf '%s  %s\n' "$2" "$1" | sha256sum --check --status
}

# name, sha256, staging folder
place() {
  if ! has_hash "$folder/$1" "$2"; then
    [ -f "$3/$1" ] ||
      fail "$folder/$1 is missing or damaged and there is no copy of it in $3: run the host stack with --replace for its copy"
    install -m 0755 "$3/$1" "$folder/$1.new"
    has_hash "$folder/$1.new" "$2" || {
      rm -f "$folder/$1.new"
      fail "$3/$1 has another sha256 than $2: the copy is damaged, run the host stack with --replace for its copy"
    }
    sync "$folder/$1.new"
    mv "$folder/$1.new" "$folder/$1"
  fi
  # Also marks the version in use as the newest one.
  touch "$folder/$1"
}

# One switch between two whole versions: a command that starts meanwhile gets the old or the new one.
switch_program() {
  printf '#!/bin/sh\nexec %s/%s %s/%s "$@"\n' "$folder" "$node" "$folder" "$agent" >"$slot_program.new"
  chmod 0755 "$slot_program.new"
  sync "$slot_program.new"
  mv "$slot_program.new" "$slot_program"
  sync "$folder"
}

# A transaction goes on with the version that began it, so some older ones stay.
remove_old() {
  for kind in node agent; do
    ls -1t "$folder" | grep "^$kind-" | tail -n +$((kept_versions + 1)) | while read -r name; do
      rm -f "$folder/$name"
    done
  done
}

main() {
  set -eu
  umask 022
  mkdir -p "$folder"
  place "$node" "$node_sha256" "$1"
  place "$agent" "$agent_sha256" "$1"
  if [ -e /sys/fs/selinux/enforce ]; then restorecon -RF "$folder"; fi
  version=$("$folder/$node" "$folder/$agent" --version) || fail "the new host program does not run; the old one stays"
  switch_program
  if [ -e /sys/fs/selinux/enforce ]; then restorecon -F "$slot_program"; fi
  printf '%s' "$setup" | "$slot_program" host-setup
  remove_old
  rm -f "$1/$node" "$1/$agent"
  rmdir "$1" 2>/dev/null || true
  printf 'agent=%s\n' "$version"
}

main "$@" </dev/null
