"""A run's plans and traces, fetched from the agents."""
