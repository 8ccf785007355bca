"""Several queries on one cluster: composed into one graph before planning, and read back from a plan.

What they share runs once, with each query's own deadline. Begin at compose.py. See docs/explanation/sharing.md.
"""
