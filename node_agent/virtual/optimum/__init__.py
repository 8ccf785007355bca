"""How few results any schedule can miss on a trial, from below and from above, and how far a policy is from that.

Begin at regret.py, the command's part. workload.py makes a trial a fixed set of tasks, miss_bound.py bounds from below,
schedule.py from above.
"""
