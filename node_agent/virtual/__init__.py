"""The virtual cluster: plans in virtual time, run by the agents' own runtimes on one event queue.

Clocks, networks and costs are replaced. `cluster` runs plans where nothing fails. `simulated` runs whole agents on
clocks, networks, disks and machines that fail, for tests. `optimum` is the least that any schedule misses. Agents need
no greenlet, only this package does (the extra `simulate`). Begin at run.py, then cluster/cluster.py. See
docs/explanation/virtual_cluster.md.
"""
