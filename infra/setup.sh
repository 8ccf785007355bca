#!/bin/sh
# Sets up .venv with the locked packages and this project, and Java for Spark. Run it through `make setup`.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}

say() { printf 'shimekiri: %s\n' "$*" >&2; }
may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }
install() { # Debian package; a first attempt may need fresh lists
    say "installing $1"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$1" >/dev/null 2>&1 ||
        { apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$1" >/dev/null; }
}

if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    say "Python 3.11 or later is needed; found: $("$PYTHON" --version 2>&1 || echo none). Name another with PYTHON=/path/to/python3 make setup"
    exit 1
fi

if [ ! -x .venv/bin/python ]; then
    "$PYTHON" -c 'import ensurepip' 2>/dev/null || if may_install; then install python3-venv; else
        say "Python's venv module is missing: install it (Debian: apt-get install python3-venv)"
        exit 1
    fi
    say "making .venv"
    "$PYTHON" -m venv .venv
fi

say "installing the locked packages into .venv (1.2 GB; a minute or two)"
.venv/bin/python -m pip install --disable-pip-version-check -q --require-hashes -r requirements.lock
.venv/bin/python -m pip install --disable-pip-version-check -q --no-deps --no-build-isolation -e .
# An agent starts twice as fast from compiled modules, and some environments keep Python from writing them by itself.
.venv/bin/python -m compileall -q protos node_agent coordinator sim_vehicles

if ! command -v java >/dev/null 2>&1 && [ ! -x "${JAVA_HOME:-/nonexistent}/bin/java" ]; then
    if may_install; then install openjdk-17-jre-headless; else
        say "Spark needs Java 17 or later: install it (Debian: sudo apt-get install openjdk-17-jre-headless)."
        say "Without it, reports still work with: coordinator report --engine python"
    fi
fi
touch .venv/.ready
