"""Scheduling policies on random scenarios, beside a schedule that knows all costs and arrivals: `make bench-policies`.

Begin at scenarios.py: classes, and what is drawn. nodes.py runs a scenario under a policy, offline.py makes it tasks
for the best schedule, __main__.py prints the tables. See docs/explanation/engine.md#how-near-they-come.
"""
