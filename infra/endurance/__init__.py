"""Minutes of overload on two real agents, then half the load: what stays bounded, and how soon all is well again.

Begin at __main__.py. measurements.py has the demands on a run, run_summary.py reads it from the traces.
"""
