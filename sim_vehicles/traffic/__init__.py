"""The warning query on recorded traffic: what really happened, what was warned of, and how the two compare."""
