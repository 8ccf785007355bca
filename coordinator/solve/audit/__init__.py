"""Every constraint of a plan checked again, from the plan alone, without a solver.

It shares no code with the models, so that an error there is found here: never import `../milp` or `../heuristics`. Each
plan that the planner returns has passed. Begin at audit.py. The other files are its parts by subject.
"""
