"""Reproduces the figures of the four papers in virtual time: `make papers`, ten minutes on two cores.

Whether they hold is decided claim by claim. Begin at registry.py. `python -m infra.papers NAME --quick` runs one. See
docs/explanation/papers.md.
"""
