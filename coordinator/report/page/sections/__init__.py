"""Sections of report.html and comparison.html, one a file: markup of runs that are read, judged and counted.

No section imports another one. Begin at head_section.py. Without HTML are hop_budgets.py (predicted beside measured),
latency_intervals.py (confidence of a quantile), data_ages.py, and miss_windows.py (when a missed result was under way,
and which nodes were away).
"""
