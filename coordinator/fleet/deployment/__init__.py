"""Puts a plan on its agents, on all of them or on none, and ends the plans that it replaces.

Begin at two_phase.py: the state machine, without I/O or clock. deploy.py drives it. See docs/explanation/control.md.
"""
