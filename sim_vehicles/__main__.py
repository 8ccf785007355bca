"""`sim-vehicles`, also as `python -m sim_vehicles`."""

from __future__ import annotations

import sys

EXTRA = {"typer", "rich", "numpy", "mcap", "greenlet", "zstandard"}  # what the extra brings, as it is imported
INTERRUPTED = 130  # as shells say it: 128 and SIGINT


def main() -> None:
    """Runs the command line; says what to install where the extra, or a part of it, is missing."""
    try:
        _main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        from protos.installed import requirements

        unmet = requirements.unmet()
        if not unmet:
            raise
        sys.stderr.write(f"sim-vehicles: {requirements.mend(unmet)}\n")
        raise SystemExit(1) from error


def _main() -> None:
    try:
        from sim_vehicles.cli.app import app

        app()  # commands import what they need when they run
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in EXTRA:
            raise
        sys.stderr.write(
            f"sim-vehicles needs {missing.name}, which is not installed: pip install 'shimekiri[vehicles]'"
            " (from a file: 'shimekiri-VERSION-py3-none-any.whl[vehicles]')\n"
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
