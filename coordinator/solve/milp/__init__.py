"""The placement paper's model as a mixed integer programme, its baseline SQPR, and reasons where nothing fits.

Begin at milp.py for the equations, programme.py for the variables that all models share, deadline.py for the allocator.
Where no placement exists: infeasible.py, unplaceable.py, least_violation.py.
"""
