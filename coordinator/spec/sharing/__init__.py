"""Several queries on one cluster: composed into one graph before planning, and read back from a plan."""
