"""A query and a cluster checked against each other before anything is planned. A mistake has its line of the file.

Begin at query_checks.py (the graph, the cluster), overload_checks.py (windows, limits, late tuples) and declarations.py
(contradictions within a query).
"""
