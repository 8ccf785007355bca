"""The operating system as an agent sees it: clocks, durable files, trace rings, scheduling classes, sockets, logs.

Only here are a clock read and a socket opened for the runtime. Begin at live_ports.py, which puts the real clock,
network and disk behind node_agent/ports.py. trace_ring.py is the shared memory that a crash leaves whole.
"""
