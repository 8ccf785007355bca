"""Windows: which tuples belong to one, when it is complete, what it gives, and what is shed before it."""
