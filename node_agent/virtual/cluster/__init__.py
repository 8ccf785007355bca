"""Nodes, links, sources and sinks of one simulated cluster, by the agents' own engine."""
