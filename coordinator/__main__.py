"""`python -m coordinator`, and the `coordinator` command."""

from __future__ import annotations

import sys

NEEDED = ("typer", "rich", "ruamel", "pydantic")
INTERRUPTED = 130  # as shells say it: 128 and SIGINT


def main() -> None:
    """Runs the command line; says what to install where the coordinator's extra is missing."""
    try:
        _main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _main() -> None:
    try:
        from coordinator.cli import run
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in NEEDED:
            raise
        sys.stderr.write(f"coordinator needs {error.name}: pip install 'shimekiri[coordinator]'\n")
        raise SystemExit(1) from error
    run()


if __name__ == "__main__":
    main()
