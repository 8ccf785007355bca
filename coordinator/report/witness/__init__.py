"""Compares every record with a second witness: with its causes, with the record of its peer, and with the plan.

A contradiction is a problem of the report. Begin at compare.py, which runs all comparisons. They are written with
keys.py and rows.py.
"""
