"""The trace spool: records that the coordinator has not collected yet, from the rings to disk, and out in chunks.

The disk is handed in, so the same code runs on a simulated one. Begin at spool_protocol.py: the decisions, without
files or clock. spool_files.py carries them out, spool_mending.py reads a spool after a crash, spool_gauge.py measures
how full it is.
"""
