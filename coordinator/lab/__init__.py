"""Network namespaces as machines on this one, with addresses and names of their own, and delay and loss on request.

Nothing is left behind, and the host's network stays as it is. All machines share one clock. Begin at namespaces.py.
walk.py takes two nodes under mutual TLS up to the report, by commands that a user types.
"""
