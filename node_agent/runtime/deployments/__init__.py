"""The plans of one core: loaded, committed, draining, and their counters.

Begin at lifecycle.py: which plan a tuple runs under. loading.py makes a plan ready in slices while others run.
heartbeats.py and cost_meter.py work per plan. See docs/explanation/change.md.
"""
