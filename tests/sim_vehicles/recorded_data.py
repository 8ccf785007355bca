"""Recordings of real traffic and radio, which are not part of the repository.

They are in the folder that `SHIMEKIRI_DATA` names, else in `shared/data` beside the repository. Tests of what is not
there are skipped.
"""

import os
from pathlib import Path

DATA = Path(os.environ.get("SHIMEKIRI_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
LANKERSHIM = DATA / "ngsim_lankershim"
WYOMING = DATA / "us_dot_bsm" / "wyoming_bsm_event.csv"
UNREAD = "USA_Lanker-1_2_T-1.csv"  # left for those who judge the warning: no test, bench or tuning reads it


def recordings() -> list[Path]:
    """The recordings of Lankershim Boulevard that are here."""
    return sorted(path for path in LANKERSHIM.glob("*.csv") if path.name != UNREAD)
