#!/usr/bin/env bash
# Makes sure that the programs of MariaDB, PostgreSQL and Redis are there; the tests start private ones.
set -euo pipefail
cd "$(dirname "$0")/.."

# Servers live in sbin, which is not on everybody's PATH.
PATH="$PATH:/usr/local/sbin:/usr/sbin"

has() { command -v "$1" >/dev/null; }
has_postgres() { has postgres && has initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }

missing=()
{ has mariadbd && has mariadb-install-db; } || missing+=(mariadb-server-core mariadb-client-core)
has_postgres || missing+=(postgresql)
has redis-server || missing+=(redis-server)

[ ${#missing[@]} -eq 0 ] || scripts/apt-install.sh "${missing[@]}"
