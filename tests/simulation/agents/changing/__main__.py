"""Runs seeds of the changing line: `python -m tests.simulation.agents.changing 17 --only add,cut`, or `--seeds 500`."""

import sys

from tests.simulation.agents.__main__ import main
from tests.simulation.agents.changing.changing_campaign import CHANGES

if __name__ == "__main__":
    sys.exit(main(CHANGES, __doc__))
