"""`make bench-planner`: what the planner finds, proves and bounds."""
