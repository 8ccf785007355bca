"""Specification by a user, as values: queries, clusters, installed operators, costs, arrivals, windows.

Begin at query_reader.py, which makes a `Query` (query.py) of a file. cluster.py does so for a cluster. files/ reads
YAML with line numbers, checks/ finds what does not fit, expressions/ is the language of values, sharing/ composes
queries.
"""
