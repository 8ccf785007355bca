"""Runs seeds of the sensors: `python -m tests.simulation.agents.sensors 17 --only power_cut,cut`, or `--seeds 500`."""

import sys

from tests.simulation.agents.__main__ import main
from tests.simulation.agents.sensors.sensors_campaign import SENSORS

if __name__ == "__main__":
    sys.exit(main(SENSORS, __doc__))
