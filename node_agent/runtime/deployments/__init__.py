"""The plans of one core: loaded, committed, draining, and what they count."""
