"""Placement and sub-deadlines: from a query and a cluster to a plan, or to the reason why there is none.

Only milp/ imports OR-Tools. Begin at planner.py. guaranteed/ is the default, milp/ the placement paper's model and
SQPR, heuristics/ for large problems, columns/ their bounds, overload/ for more load than there is time for, audit/ the
check without a solver, repair/ the smallest changes that help. See docs/explanation/placement.md and
docs/explanation/sound.md.
"""
