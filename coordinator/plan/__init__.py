"""A plan's layout: what each node runs, put together, written, and opened again."""
