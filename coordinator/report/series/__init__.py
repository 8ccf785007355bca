"""Data of the page's drawings: latency and use over time, which nodes were away and its cost, nodes around a result.

No verdict comes from it. Records are arrays. A run is read three times, a segment at a time. What is kept is bounded:
bins, a top k, and instances of some windows. Begin at run_series.py. run_clock.py is the first pass,
instances_around.py the last one.
"""
