"""`python -m infra.release fresh|arm64`: trials on Debian systems of their own, a table at the end."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from infra.release import arm64, fresh
from infra.release.release_steps import Outcome, table
from infra.release.userland import SUITES, UserlandError, why_not

ROOT = Path(__file__).parents[2]
TRIALS = {"fresh": fresh.fresh, "arm64": arm64.arm64}


def main() -> int:
    """0: all passed; 1: a step failed; 2: it cannot be tried here."""
    parser = argparse.ArgumentParser(prog="python -m infra.release", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("trial", choices=TRIALS)
    parser.add_argument("--suite", action="append", choices=SUITES, help="default: all; may be repeated")
    parser.add_argument(
        "--trees", type=Path, metavar="DIR", help="keep what debootstrap makes there, for the next time"
    )
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _ended)
    reason = why_not(emulated=given.trial == "arm64")
    if reason:
        print(f"release: {reason}", file=sys.stderr)
        return 2
    logs = ROOT / "runs" / f"release-{given.trial}"
    logs.mkdir(parents=True, exist_ok=True)
    outcomes: list[Outcome] = []
    try:
        with tempfile.TemporaryDirectory(prefix="shimekiri-clone-") as folder:
            clone = Path(folder) / "shimekiri"
            subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(clone)], check=True)
            for suite in given.suite or SUITES:
                outcomes += TRIALS[given.trial](suite, clone, given.trees, logs)
    except UserlandError as error:
        print(f"release: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("release: stopped; what was made is removed", file=sys.stderr)
        return 130
    finally:
        if outcomes:
            (logs / "table.txt").write_text(f"{table(outcomes)}\n")
            print(table(outcomes))
    return 0 if all(each.passed for each in outcomes) else 1


def _ended(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
