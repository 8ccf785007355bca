"""Queries that are added to, or removed from, what runs: the next plan, whether it is admitted, and the way there."""
