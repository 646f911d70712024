# Tries on a host, as its login, all that the host stack and every later cutover will need, and names
# everything that is missing at once. Changes nothing but the login's own staging folder.
# Expects: login, host, slot_program, docker_shim, staging, needed_mib

minimum_glibc=2.28
minimum_systemd=250
minimum_podman=4.3
earliest_clock=1767225600

problems=0

problem() {
  problems=$((problems + 1))
  printf '%s: %s: %s\n' "$host" "$1" "$2" >&2
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

at_least() {
  printf '%s\n%s\n' "$1" "$2" | sort -V -C
}

check_without_root() {
  machine=$(uname -m)
  [ "$machine" = x86_64 ] || problem architecture "is $machine, only x86_64 is built for"

  glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)
  if [ -z "$glibc" ]; then
    problem 'C library' "is not glibc (musl?); the host program's Node needs glibc $minimum_glibc or newer"
  elif ! at_least "$minimum_glibc" "$glibc"; then
    problem 'C library' "is glibc $glibc; the host program's Node needs $minimum_glibc or newer"
  fi

  cgroups=$(stat -f -c %T /sys/fs/cgroup 2>/dev/null)
  [ "$cgroups" = cgroup2fs ] ||
    problem cgroups "/sys/fs/cgroup is ${cgroups:-absent}, not cgroup v2; boot with systemd.unified_cgroup_hierarchy=1"

  systemd=$(systemctl --version 2>/dev/null | awk 'NR == 1 { print $2 }')
  if [ -z "$systemd" ]; then
    problem systemd 'is not there'
  else
    at_least "$minimum_systemd" "$systemd" || problem systemd "is $systemd, $minimum_systemd or newer is needed"
    systemd-analyze unit-paths 2>/dev/null | grep -qx /usr/local/lib/systemd/system ||
      problem systemd 'does not read /usr/local/lib/systemd/system (see systemd-analyze unit-paths): units there would be ignored'
  fi

  real=$(readlink -f /usr/local)
  [ "$real" = /usr/local ] ||
    problem /usr/local "leads to $real: on an image-based system units there are not there when systemd starts"
  for folder in /usr/local /usr/local/lib /usr/local/libexec; do
    [ -d "$folder" ] || continue
    # Not stat -c %m, which does not see a bind mount of the same file system.
    mounted=$(findmnt -n -o TARGET -T "$folder")
    case $mounted in
      / | /usr) ;;
      *) problem "$folder" "is on $mounted, mounted after systemd has read its units: it must be on the root file system" && break ;;
    esac
  done
  space "$needed_mib" /usr/local

  [ "$(date +%s)" -ge $earliest_clock ] ||
    problem clock "says $(date -u +%Y-%m-%d): certificates will not be accepted and records will be out of order; set it"

  if ! mkdir -p -m 700 "$HOME/$staging" || ! chmod 700 "$HOME/$staging"; then
    problem "$HOME/$staging" "cannot be made by $login, files are copied there"
  else
    space "$needed_mib" "$HOME/$staging"
  fi

  found=$(command -v docker)
  if [ -n "$found" ] && [ "$found" != "$docker_shim" ]; then
    # podman's own stand-in for docker does the same work with a login's store, hiding it harms nobody.
    case $(docker --version 2>/dev/null) in
      podman*) ;;
      *) problem "$found" "is another docker, which $docker_shim would hide; images are pulled through the latter. Remove one" ;;
    esac
  fi
  if [ -e "$docker_shim" ] && ! grep -q 'Installed by slot' "$docker_shim"; then
    problem "$docker_shim" 'is not ours and is not overwritten; move it away'
  fi
  case :$PATH: in
    *:"${docker_shim%/*}":*) ;;
    *) problem PATH "of $login has no ${docker_shim%/*} (it is $PATH): images could not be pulled through $docker_shim" ;;
  esac
}

space() {
  free=$(df -Pk "$2" | awk 'NR == 2 { print int($4 / 1024) }')
  [ "${free:-0}" -ge "$1" ] || problem "$2" "has $free MiB left, $1 MiB are needed"
}

check_with_root() {
  for command in 'true' 'sh -c true' 'systemctl --version' 'podman --version'; do
    # The words of a command are separate words here.
    refusal=$(as_root $command 2>&1) && continue
    case $refusal in
      *'command not found'*) ;;
      sudo:*)
        problem sudo "'sudo -n $command' was refused (${refusal##*sudo: }); give $login NOPASSWD: ALL in /etc/sudoers.d. What needs root was not checked"
        return
        ;;
    esac
  done

  missing=$(as_root sh -c 'for tool in podman curl ss systemctl systemd-run journalctl install sha256sum df mktemp; do
    command -v "$tool" >/dev/null || printf "%s " "$tool"; done')
  [ -z "$missing" ] || problem tools "not there for root: ${missing% }; install them"

  case " $missing" in
    *' podman '*) ;;
    *)
      podman=$(as_root podman --version 2>/dev/null | awk '{ print $3 }')
      at_least "$minimum_podman" "${podman:-0}" ||
        problem podman "is ${podman:-of unknown version}, $minimum_podman or newer is needed"
      store=$(as_root podman info --format '{{.Store.GraphRoot}}' 2>/dev/null) ||
        problem podman "'podman info' fails for root: $(as_root podman info 2>&1 >/dev/null | tail -n 1)"
      ;;
  esac

  state=$(as_root systemctl is-system-running 2>/dev/null)
  case $state in
    running | degraded | starting) ;;
    *) problem systemctl "'systemctl is-system-running' says ${state:-nothing}" ;;
  esac
  refusal=$(as_root systemd-run --quiet --wait --collect true 2>&1) ||
    problem systemd-run "cannot run a transient unit: $(printf '%s' "$refusal" | tail -n 1)"

  if probe=$(as_root mktemp /usr/local/.slot-XXXXXX 2>/dev/null); then
    printf '#!/bin/sh\n' | as_root tee "$probe" >/dev/null
    as_root chmod 700 "$probe"
    as_root "$probe" 2>/dev/null || problem /usr/local 'nothing can be executed there (noexec?)'
    as_root rm -f "$probe"
  else
    problem /usr/local 'cannot be written by root (read-only?)'
  fi
}

main() {
  check_without_root
  check_with_root
  if [ $problems -gt 0 ]; then
    printf '%s: not fit for an engine, %s reason(s) above; nothing was changed\n' "$host" $problems >&2
    exit 1
  fi
  printf 'podman=%s\nsystemd=%s\nglibc=%s\nstore=%s\n' "$podman" "$systemd" "$glibc" "$store"
}

# The whole text is read before anything runs, and no command can eat the rest of it.
main </dev/null
