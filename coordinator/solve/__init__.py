"""Placement and sub-deadlines: from a query and a cluster to a plan, or to the reason why there is none."""
