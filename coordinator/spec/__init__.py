"""Specification by a user, as values: queries, clusters, operators, costs."""
