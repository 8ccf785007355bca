"""The Autoware Reference System as a query: plans at several loads, KPIs in virtual time and live. `make ars`.

KPIs are those of several policies, and of a model of ROS 2's executor. Begin at reference_graph.py (the graph, and
where its facts are from) and kpis.py. `python -m infra.reference_system --quick --no-live` runs a part. See
docs/explanation/reference_system.md.
"""
