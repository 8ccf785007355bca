"""The parent process of an agent: it starts and watches the others, and ends an operator that hangs.

It owns what must survive the other processes. It runs at the highest priority, so it uses neither asyncio nor protobuf
and allocates little. Begin at supervision.py, the rules, which are the same in a simulation. supervisor.py applies them
to forked processes. watchdog.py decides on plain values when an operator hangs, worker.py is a runtime on its core.
"""
