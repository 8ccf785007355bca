"""Figures of the paper on shedding of aggregate queries: [S]."""
