"""The hot path compiled, in a copy of the repository."""
