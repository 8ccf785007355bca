"""Input and output of solvers in integers: items, streams, routes, capacities, choices, the incumbent of a change.

It knows no solver. Begin at problem.py, the placement problem. choices.py has what a user may choose beside the two
files. docs/explanation/papers.md has the equations.
"""
