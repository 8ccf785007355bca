"""Chaos: three agents in network namespaces, real faults, and an independent recount of every tuple after each."""
