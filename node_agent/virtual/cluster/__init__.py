"""Nodes, links, sources and sinks of one simulated cluster in one process, by the agents' own runtimes.

Links lose and delay only by the scenario. Operators take the time of the cost model. Begin at cluster.py (nodes, links
and clients, trial by trial), then node.py (one runtime and its costs), loop_stack.py (a loop as a greenlet) and
ideal_network.py.
"""
