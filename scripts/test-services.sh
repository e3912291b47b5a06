#!/usr/bin/env bash
# Makes sure that what the tests run is there: MariaDB, PostgreSQL and Redis (private ones are started), curl, Node.
set -euo pipefail
cd "$(dirname "$0")/.."

# Servers live in sbin, which is not on every user's PATH.
PATH="$PATH:/usr/local/sbin:/usr/sbin"

has() { command -v "$1" >/dev/null; }
has_postgres() { has postgres && has initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }

missing=()
{ has mariadbd && has mariadb-install-db; } || missing+=(mariadb-server-core mariadb-client-core)
has mariadb-dump || missing+=(mariadb-client) # the lines for backups are run as they stand
has_postgres || missing+=(postgresql)
has redis-server || missing+=(redis-server)
has faketime || missing+=(faketime) # one instance's clock is wrong
has strace || missing+=(strace) # disks become slow
has curl || missing+=(curl) # the README's commands are run as they stand
{ has node && has npm; } || missing+=(nodejs npm) # the JavaScript SDK's tests, from Node 18 on
has chromium || missing+=(chromium) # the web client is tested in a real browser
has firefox-esr || missing+=(firefox-esr) # and its main paths in another
has_font() { has fc-list && [ -n "$(fc-list "$1")" ]; }
has_font ':lang=zh-cn' || missing+=(fontconfig fonts-noto-cjk) # what tests look at is drawn
has_font ':lang=und-zsye' || missing+=(fontconfig fonts-noto-color-emoji)

has nginx || missing+=(nginx-light) # what is in deploy/ is tried out, as far as that goes without an engine
has haproxy || missing+=(haproxy)
has docker-compose || missing+=(docker-compose)
has turnserver || missing+=(coturn) # calls through a TURN server
has systemd-analyze || missing+=(systemd)

# Clusters of databases: `NEXO_LONG_TESTS=1`, bench/campaign.py and bench/failover.py.
if [ -n "${NEXO_LONG_TESTS:-}" ]; then
    { has wsrep_sst_rsync && has rsync && [ -e /usr/lib/galera/libgalera_smm.so ]; } ||
        missing+=(galera-4 mariadb-server rsync)
    { has patroni && has etcd; } || missing+=(patroni etcd-server) # the libraries that Patroni needs come with it
fi

[ ${#missing[@]} -eq 0 ] || scripts/apt-install.sh "${missing[@]}"

# Debian 12 has Patroni 3.0, under which a primary that froze takes its lead back from the one that replaced it.
if [ -n "${NEXO_LONG_TESTS:-}" ] && [ ! -e .venv/patroni/patroni/__main__.py ]; then
    .venv/bin/python -m pip install --quiet --no-deps --require-hashes --target .venv/patroni -r requirements/patroni.txt
fi
