#!/bin/sh
# Sets up .venv with the locked packages and this project, and finds or installs a Java for Spark, and a browser and a broker for tests. Run it through `make setup`.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
JAVA="openjdk-25-jre-headless openjdk-21-jre-headless openjdk-17-jre-headless default-jre-headless"

say() { printf 'shimekiri: %s\n' "$*" >&2; }
may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }
offered() { LC_ALL=C apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [0-9]'; }
first_offered() { for package in "$@"; do if offered "$package"; then echo "$package" && return; fi; done; }
install() { # the first of these Debian packages that the system offers; a first attempt may need fresh lists
    for attempt in 1 2; do
        package=$(first_offered "$@")
        if [ -n "$package" ]; then
            say "installing $package"
            DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$package" >/dev/null 2>&1 && return
        fi
        [ "$attempt" = 2 ] || apt-get update -q >/dev/null 2>&1 || true
    done
    say "apt-get could not install ${package:-any of: $*}"
    return 1
}

if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    say "Python 3.11 or later is needed; found: $("$PYTHON" --version 2>&1 || echo none). Name another with PYTHON=/path/to/python3 make setup"
    exit 1
fi

if [ ! -x .venv/bin/python ]; then
    if ! "$PYTHON" -c 'import ensurepip' 2>/dev/null && ! { may_install && install python3-venv; }; then
        say "Python's venv module is missing: install it (Debian, Ubuntu: sudo apt-get install python3-venv)"
        exit 1
    fi
    say "making .venv"
    "$PYTHON" -m venv .venv
fi

say "installing the locked packages into .venv (1.2 GB; a minute or two)"
.venv/bin/python -m pip install --disable-pip-version-check -q --no-compile --require-hashes -r requirements.lock
SHIMEKIRI_COMPILED=0 .venv/bin/python -m pip install --disable-pip-version-check -q --no-deps --no-build-isolation -e .
# An agent starts twice as fast from compiled modules, and some environments keep Python from writing them by itself.
.venv/bin/python -m compileall -q protos node_agent coordinator sim_vehicles
# pip compiles on one core. Some packages bring files for other Pythons, which are no error.
.venv/bin/python -m compileall -q -j 0 .venv/lib >/dev/null 2>&1 || true

# Tests look at the report's page in a browser where there is one, and skip it where there is none.
browser() { .venv/bin/python -c 'import shutil, sys; sys.exit(shutil.which("chromedriver") is None)'; }
if ! browser && may_install; then install chromium-driver || true; fi # it brings Chromium
browser || say "the report's page is not tested in a browser: Chromium and its driver are not here (Debian: chromium-driver)"

# Connectors are tested with a real MQTT broker where there is one. Debian would keep one running from now on.
broker() { PATH=$PATH:/usr/sbin command -v mosquitto >/dev/null 2>&1; }
if ! broker && may_install && install mosquitto; then
    systemctl disable --now mosquitto >/dev/null 2>&1 || service mosquitto stop >/dev/null 2>&1 || true
fi
broker || say "connectors are not tested over MQTT: its broker is not here (Debian: mosquitto)"

java() { .venv/bin/python -m coordinator.report.spark.java; }
# shellcheck disable=SC2086  # names of packages, one a word
if ! java >/dev/null 2>&1 && [ -z "${JAVA_HOME:-}" ] && may_install; then install $JAVA || true; fi
if found=$(java 2>&1); then say "reports use Spark with $found"; else say "reports work in plain Python, without Spark: $found"; fi
touch .venv/.ready
