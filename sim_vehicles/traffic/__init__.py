"""The warning query on recorded traffic: every vehicle in turn is warned, and its warnings are compared with the truth.

Begin at ego_runs.py. See docs/explanation/traffic.md.
"""
