"""`python -m coordinator`, and the `coordinator` command."""

from __future__ import annotations

import sys

EXTRA = {  # what the extra brings, as it is imported
    "typer", "rich", "ruamel", "pydantic", "plotly", "textual", "ortools", "pyspark", "pandas", "pyarrow",
    "cryptography",
}  # fmt: skip
INTERRUPTED = 130  # as shells say it: 128 and SIGINT


def main() -> None:
    """Runs the command line; says what to install where the coordinator's extra, or a part of it, is missing."""
    try:
        _main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        from protos import requirements

        unmet = requirements.unmet()
        if not unmet:
            raise
        sys.stderr.write(f"coordinator: {requirements.mend(unmet)}\n")
        raise SystemExit(1) from error


def _main() -> None:
    try:
        from coordinator.cli import run

        run()  # commands import what they need when they run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        sys.stderr.write(
            f"coordinator needs {error.name}, which is not installed: pip install 'shimekiri[coordinator]'"
            " (from a file: 'shimekiri-VERSION-py3-none-any.whl[coordinator]')\n"
        )
        raise SystemExit(1) from error


if __name__ == "__main__":
    main()
