"""Readers of recorded motion: our CSV, SUMO's floating-car data (XML, CSV) and CommonRoad scenarios."""
