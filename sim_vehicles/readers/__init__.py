"""Readers of recorded motion: our CSV, SUMO's floating-car data (XML, CSV) and CommonRoad scenarios.

The content decides the format, never the name. Begin at formats.py, `read_motion`. See docs/explanation/readers.md.
"""
