"""Connectors: messages of other systems as tuples, and results as messages (`from:` and `to:` in a query).

They run in a process beside the runtimes, one thread per connector. Only the modules of a kind import the library of
its system. Begin at connector_ports.py (what a kind offers), kinds.py (the kinds) and mapping.py (encodings).
connector_threads.py runs message_intake.py and result_delivery.py. See docs/explanation/connectors.md.
"""
