"""Worst-case end-to-end bounds before anything is deployed ([Q]: network calculus, corrected).

They hold for non-preemptive EDF on sub-deadlines. A bound is made of integers in ns and exact fractions, never of
floats. Begin at bounds.py, then propagate.py. See docs/explanation/guarantee.md, for freshness/
docs/explanation/age.md, for confidence/ docs/explanation/confidence.md.
"""
