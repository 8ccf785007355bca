"""Search and bounds for problems that are too large for the whole model.

There is a plan at once. It is improved until it is proven or time is up. Begin at scale.py, the loop. search_state.py
holds a placement that is changed move by move, annealing.py finds most of the plans. bound.py and decomposition.py
bound the traffic. See docs/explanation/placement.md.
"""
