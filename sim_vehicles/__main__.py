"""`sim-vehicles`, also as `python -m sim_vehicles`."""

from __future__ import annotations

import sys

INTERRUPTED = 130  # as shells say it: 128 and SIGINT


def main() -> None:
    try:
        _main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _main() -> None:
    try:
        from sim_vehicles.cli import app
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.stderr.write(
            f"sim-vehicles needs {missing.name}, which is not installed: pip install 'shimekiri[vehicles]'\n"
        )
        sys.exit(1)
    app()


if __name__ == "__main__":
    main()
