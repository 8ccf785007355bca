"""Queries that are added to, or removed from, a running cluster: the next plan, its admission, the transition.

Begin at next_plan.py, admission.py and transition.py. See docs/explanation/change.md.
"""
