"""Benchmarks: every figure is a ratio to a bare loop or socket measured in the same run."""
