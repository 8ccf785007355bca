"""Plans of more load than the nodes have time for: what is served in full, and what gives way."""
