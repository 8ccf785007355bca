"""`make witness`: which conflicts of recordings commonroad-crime confirms, and which it alone sees.

`python -m infra.second_witness RECORDING...`: our CSV, SUMO's floating-car data or CommonRoad scenarios. Installs the
witness into .venv-witness the first time (1 GB, three minutes). What it said stays in runs/witness, so that a
second run asks only about pairs that are new.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from infra.environments.pinned_environment import UnavailableError
from infra.second_witness import witness_table
from infra.second_witness.agreement import Compared, compared
from infra.second_witness.witness_process import ENVIRONMENT, SilentError, heard, motion_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 for any agreement, 1 without a witness."""
    parser = argparse.ArgumentParser(prog="python -m infra.second_witness", description="a second witness of conflicts")
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING")
    recordings = parser.parse_args(arguments).recordings
    console = Console(width=150)
    found: dict[str, list[Compared]] = {}
    try:
        with console.status("environment of the witness"):
            python = ENVIRONMENT.python()
        for recording in recordings:
            with console.status(recording.name):
                motion = motion_of(recording, python)
                found[recording.stem] = compared(motion, heard(recording.stem, motion, python))
    except (UnavailableError, SilentError) as error:
        console.print(f"no witness: {error}", highlight=False, markup=False)
        return 1
    witness_table.show(found, console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
