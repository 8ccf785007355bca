"""Recorded floating-car data and scenes that come with the package (made as docs/reference/sim_vehicles.md says)."""

from pathlib import Path

RECORDINGS = Path(__file__).parent
