"""Figures and claims of the batching paper (ATS): [A].

The first line of each file has the figures that it makes. Begin at batch_length.py.
"""
