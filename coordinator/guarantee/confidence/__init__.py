"""Bounds that hold for a share of the results, by costs as they were measured."""
