"""Files of the state directory: durable writes, local plans, the reserve, the count of starts, the lock.

The disk is handed in, except for the lock. Begin at state_dir.py, which has the paths. durable_files.py writes a file
so that a loss of power leaves the old or the new one.
"""
