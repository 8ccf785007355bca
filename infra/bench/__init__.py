"""Benchmarks: every figure is a ratio to a bare loop or socket measured in the same run.

There is one file or folder per benchmark, `python -m infra.bench.NAME` runs one. Begin at __main__.py (the list of
`make bench`) and figures.py (a figure, its goal, how it was measured). See docs/reference/figures.md.
"""
