"""A peer each. They run in the peer's own environment: that package and the standard library."""
