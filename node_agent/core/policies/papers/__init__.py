"""Policies of the four papers that no plan gets by itself. One is loaded when a plan names it.

The first line of each file has the algorithm, and how it differs from the printed one. Begin at ats.py or qed.py. See
docs/explanation/papers.md.
"""
