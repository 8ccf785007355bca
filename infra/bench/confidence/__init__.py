"""Bounds with a confidence on random plans, against held-out runs."""
