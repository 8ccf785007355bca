"""Figures and tables of the paper on deterministic QoS (QED, PQED): [Q].

Begin at table2.py. random_queries.py and table3.py have the queries that the others run.
"""
