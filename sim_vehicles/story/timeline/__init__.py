"""A run's trace: one result followed backwards, its time stage by stage, the nodes' rows around it."""
