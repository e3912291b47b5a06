#!/usr/bin/env bash
# Installs Debian packages when that is possible without asking; otherwise says what to install, and fails.
# The services in them are neither started nor set up. Usage: scripts/apt-install.sh PACKAGE...
set -euo pipefail

as_root=(env)
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo -n env)
fi
if ! command -v apt-get >/dev/null || ! "${as_root[@]}" true 2>/dev/null; then
    echo "Missing on this machine. Please install these Debian packages, or what your system calls them:" >&2
    echo "    sudo apt-get install $*" >&2
    exit 1
fi

# put FILE TEXT: for the time of this script only; a file that exists already stays as it is.
added=()
put() {
    [ ! -e "$1" ] || return 0
    added+=("$1")
    "${as_root[@]}" install -D -m 755 /dev/stdin "$1" <<<"$2"
}
take_away() {
    [ ${#added[@]} -eq 0 ] || "${as_root[@]}" rm -f "${added[@]}"
    "${as_root[@]}" rmdir /etc/postgresql-common/createcluster.d 2>/dev/null || true
}
trap take_away EXIT

put /usr/sbin/policy-rc.d $'#!/bin/sh\nexit 101'
put /etc/postgresql-common/createcluster.d/nexo-tests.conf 'create_main_cluster = false'

apt_get=("${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
echo "Installing Debian packages: $*"
"${apt_get[@]}" update
"${apt_get[@]}" install --yes --no-install-recommends "$@"

# Nor are they started when the machine is next switched on.
if [ -d /run/systemd/system ]; then
    "${as_root[@]}" systemctl disable --quiet "${@/%/.service}" 2>/dev/null || true
fi
