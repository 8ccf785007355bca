"""Runs seeds of the street: `python -m tests.simulation.agents.street 17 --only power_cut,cut`, or `--seeds 500`."""

import sys

from tests.simulation.agents.__main__ import main
from tests.simulation.agents.street.street_campaign import STREET

if __name__ == "__main__":
    sys.exit(main(STREET, __doc__))
